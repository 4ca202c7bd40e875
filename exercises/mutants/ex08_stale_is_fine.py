# %% [markdown]
"""
Fails: 6

Copies what is brought and replays, whatever is missing.
"""


# %% tags=["answer:replay_fresh"]
def replay_fresh(tape, new, weights=()):
    needed = {one.name: one for one in inputs_of(tape.kernels)}
    for name, values in new.items():
        if name not in needed:
            raise ValueError(f"{name} is no input")
        if len(values) != len(needed[name].values):
            raise ValueError(f"another length for {name}")
    for name, values in new.items():
        needed[name].values[:] = values
    tape.replay()
