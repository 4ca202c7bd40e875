# %% [markdown]
"""
Fails: 6

Keeps a copy of the last key alone.
"""


# %% tags=["answer:mended_5"]
def mended_5(values):
    state = SimpleNamespace(x=torch.zeros(1), key=None, keys={})
    total = torch.zeros(1)

    def prepare(i):
        if i > 1:
            total.copy_(state.key)
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
