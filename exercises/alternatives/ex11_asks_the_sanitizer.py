# %% [markdown]
"""
Asks the sanitizer for every diagnosis, fills the table up in Python, and adds each key to the sum at once.
"""


# %% tags=["answer:diagnosis_1"]
def diagnosis_1():
    (finding,) = runner_1().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_2"]
def diagnosis_2():
    (finding,) = runner_2().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_3"]
def diagnosis_3():
    (finding,) = runner_3().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_4"]
def diagnosis_4():
    (finding,) = runner_4().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_5"]
def diagnosis_5():
    (finding,) = runner_5().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_6"]
def diagnosis_6():
    (finding,) = runner_6().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_7"]
def diagnosis_7():
    (finding,) = runner_7().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:diagnosis_8"]
def diagnosis_8():
    (finding,) = runner_8().sanitize()
    return finding.kind, finding.tensor


# %% tags=["answer:mended_2"]
def mended_2(pages, most):
    fixed = SimpleNamespace(table=torch.zeros(most, dtype=torch.int64))
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i):
        spare = [0] * (most - len(pages[i]))
        fixed.table.copy_(torch.tensor(list(pages[i]) + spare))

    def step():
        return torch.index_select(cache, 0, fixed.table).sum()

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
            total.add_(state.key)
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
