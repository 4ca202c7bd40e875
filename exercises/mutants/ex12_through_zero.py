# %% [markdown]
"""
Fails: 2

Fits a line through the origin: no launch cost at all.
"""


# %% tags=["answer:fit_line"]
def fit_line(x, times, weights=None):
    if len(set(x)) < 2:
        raise ValueError("two different x are needed")
    return 0.0, sum(a * t for a, t in zip(x, times)) / sum(a * a for a in x)
