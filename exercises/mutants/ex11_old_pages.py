# %% [markdown]
"""
Fails: 5

Leaves the pages of a longer step in the table.
"""


# %% tags=["answer:mended_2"]
def mended_2(pages, most):
    fixed = SimpleNamespace(table=torch.zeros(most, dtype=torch.int64))
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i):
        fixed.table[: len(pages[i])] = torch.tensor(pages[i])

    def step():
        return cache[fixed.table].sum()

    return Case(
        prepare,
        step,
        owners={"fixed": fixed, "cache": cache},
        rounds=len(pages) - 1,
    )
