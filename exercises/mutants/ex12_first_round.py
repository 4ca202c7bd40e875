# %% [markdown]
"""
Fails: 5

Takes the first round and leaves the others.
"""


# %% tags=["answer:fit_rounds"]
def fit_rounds(sizes, rounds):
    return launch_and_bandwidth(sizes, rounds[0])
