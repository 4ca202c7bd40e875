# %% [markdown]
"""
Fails: 2

Draws the line through the first point and the last.
"""


# %% tags=["answer:fit_line"]
def fit_line(x, times, weights=None):
    if x[0] == x[-1]:
        raise ValueError("two different x are needed")
    each = (times[-1] - times[0]) / (x[-1] - x[0])
    return times[0] - each * x[0], each
