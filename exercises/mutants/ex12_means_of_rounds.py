# %% [markdown]
"""
Fails: 5

Takes the mean over the rounds.
"""


# %% tags=["answer:fit_rounds"]
def fit_rounds(sizes, rounds):
    means = [sum(column) / len(column) for column in zip(*rounds)]
    return launch_and_bandwidth(sizes, means)
