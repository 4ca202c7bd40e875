# %% [markdown]
"""
Fails: 5

Drops the one round that took longest; each of the others has outliers of its own.
"""


# %% tags=["answer:fit_rounds"]
def fit_rounds(sizes, rounds):
    kept = sorted(rounds, key=sum)[:-1]
    means = [sum(column) / len(column) for column in zip(*kept)]
    return launch_and_bandwidth(sizes, means)
