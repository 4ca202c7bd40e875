# %% [markdown]
"""
Fails: 6

Wants new values for the weights as well.
"""


# %% tags=["answer:replay_fresh"]
def replay_fresh(tape, new, weights=()):
    needed = {one.name: one for one in inputs_of(tape.kernels)}
    for name in needed:
        if name not in new:
            raise ValueError(f"{name} is stale")
    for name, values in new.items():
        if name not in needed:
            raise ValueError(f"{name} is no input")
        if len(values) != len(needed[name].values):
            raise ValueError(f"another length for {name}")
    for name, values in new.items():
        needed[name].values[:] = values
    tape.replay()
