# %% [markdown]
"""
Fails: 3

Takes weights and does not use them.
"""


# %% tags=["answer:fit_line"]
def fit_line(x, times, weights=None):
    if len(set(x)) < 2:
        raise ValueError("two different x are needed")
    weights = weights or [1.0] * len(x)
    mean_x = sum(x) / len(x)
    mean_t = sum(times) / len(x)
    over = sum(
        (a - mean_x) * (t - mean_t) for w, a, t in zip(weights, x, times)
    )
    under = sum((a - mean_x) ** 2 for w, a in zip(weights, x))
    return mean_t - over / under * mean_x, over / under
