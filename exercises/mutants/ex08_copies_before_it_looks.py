# %% [markdown]
"""
Fails: 6

Copies one input after the other and finds out in between that one is wrong.
"""


# %% tags=["answer:replay_fresh"]
def replay_fresh(tape, new, weights=()):
    needed = {one.name: one for one in inputs_of(tape.kernels)}
    for name, values in new.items():
        if name not in needed:
            raise ValueError(f"{name} is no input")
        if len(values) != len(needed[name].values):
            raise ValueError(f"another length for {name}")
        needed[name].values[:] = values
    for name in needed:
        if name not in new and name not in weights:
            raise ValueError(f"{name} is stale")
    tape.replay()
