# %% [markdown]
"""
Answers with lists, keeps a mask beside a table, and reads each key into a number of Python's before the replay.
"""


# %% tags=["answer:diagnosis_1"]
def diagnosis_1():
    return ["stale-input", "fixed.positions"]


# %% tags=["answer:diagnosis_5"]
def diagnosis_5():
    return "overwritten-output", "state.keys"


# %% tags=["answer:mended_2"]
def mended_2(pages, most):
    fixed = SimpleNamespace(
        table=torch.ones(most, dtype=torch.int64), mask=torch.zeros(most)
    )
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i):
        count = len(pages[i])
        fixed.mask.copy_(torch.arange(most) < count)
        for at, page in enumerate(pages[i]):
            fixed.table[at] = page

    def step():
        return (cache[fixed.table] * fixed.mask).sum()

    return Case(
        prepare,
        step,
        owners={"fixed": fixed, "cache": cache},
        rounds=len(pages) - 1,
    )


# %% tags=["answer:mended_5"]
def mended_5(values):
    state = SimpleNamespace(x=torch.zeros(1), key=None, keys={})
    total = torch.zeros(1)

    def prepare(i):
        if i > 1:
            state.keys[i - 1] = state.key.item()
            total.fill_(sum(state.keys.values()))
        state.x.fill_(values[i])

    def step():
        state.key = state.x * 2
        return state.key + total

    return Case(
        prepare,
        step,
        owners={"state": state, "total": total},
        rounds=len(values) - 1,
    )
