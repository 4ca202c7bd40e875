# %% [markdown]
"""
Fails: 2

Does not look whether the x differ.
"""


# %% tags=["answer:fit_line"]
def fit_line(x, times, weights=None):
    weights = weights or [1.0] * len(x)
    total = sum(weights)
    mean_x = sum(w * a for w, a in zip(weights, x)) / total
    mean_t = sum(w * t for w, t in zip(weights, times)) / total
    over = sum(
        w * (a - mean_x) * (t - mean_t) for w, a, t in zip(weights, x, times)
    )
    under = sum(w * (a - mean_x) ** 2 for w, a in zip(weights, x))
    return mean_t - over / under * mean_x, over / under
