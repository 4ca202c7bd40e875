# %% [markdown]
"""
Fails: 5

Fits all times at once, outliers among them.
"""


# %% tags=["answer:fit_rounds"]
def fit_rounds(sizes, rounds):
    return launch_and_bandwidth(
        list(sizes) * len(rounds), [t for one in rounds for t in one]
    )
