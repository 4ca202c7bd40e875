# %% [markdown]
"""
Fails: 5

Keeps the short table, and drops the pages that do not fit.
"""


# %% tags=["answer:mended_2"]
def mended_2(pages, most):
    fixed = SimpleNamespace(table=torch.zeros(2, dtype=torch.int64))
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i):
        fixed.table.zero_()
        fit = torch.tensor(pages[i][:2])
        fixed.table[: len(fit)] = fit

    def step():
        return cache[fixed.table].sum()

    return Case(
        prepare,
        step,
        owners={"fixed": fixed, "cache": cache},
        rounds=len(pages) - 1,
    )
