# %% [markdown]
"""
Fails: 6

Clones in the step: the clone is in the graph's memory as well.
"""


# %% tags=["answer:mended_5"]
def mended_5(values):
    state = SimpleNamespace(x=torch.zeros(1), key=None, keys={})
    total = torch.zeros(1)

    def prepare(i):
        if i > 1:
            state.keys[i - 1] = state.key
            total.copy_(torch.cat(list(state.keys.values())).sum()[None])
        state.x.fill_(values[i])

    def step():
        state.key = (state.x * 2).clone()
        return state.key + total

    return Case(
        prepare,
        step,
        owners={"state": state, "total": total},
        rounds=len(values) - 1,
    )
