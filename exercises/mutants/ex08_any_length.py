# %% [markdown]
"""
Fails: 6

Copies however many values there are.
"""


# %% tags=["answer:replay_fresh"]
def replay_fresh(tape, new, weights=()):
    needed = {one.name: one for one in inputs_of(tape.kernels)}
    for name in needed:
        if name not in new and name not in weights:
            raise ValueError(f"{name} is stale")
    for name, values in new.items():
        if name not in needed:
            raise ValueError(f"{name} is no input")
    for name, values in new.items():
        needed[name].values[:] = values
    tape.replay()
