# %% [markdown]
"""
Closures for the graphs' parts, identities instead of names, one loop for everything that can be stale.
"""


# %% tags=["answer:Rerun"]
class Rerun:
    def __init__(self, step, batch):
        self.replay = lambda: step(batch)


# %% tags=["answer:Tape"]
class Tape:
    def __init__(self, device):
        self.device, self.kernels = device, []

    def note(self, kernel, out, inputs, numbers=()):
        self.kernels.append((kernel, out, [*inputs], [*numbers]))

    def record(self, step):
        self.kernels = []
        self.device.recorder = self.note
        try:
            step()
        except BaseException:
            self.device.recorder = None
            raise
        self.device.recorder = None

    def replay(self):
        for launch in self.kernels:
            self.device.launch(*launch)


# %% tags=["answer:inputs_of"]
def inputs_of(kernels):
    found, written = [], []
    for _, out, reads, _ in kernels:
        for one in reads:
            if not any(one is other for other in [*found, *written]):
                found.append(one)
        written.append(out)
    return found


# %% tags=["answer:replay_fresh"]
def replay_fresh(tape, new, weights=()):
    copies = []
    for one in inputs_of(tape.kernels):
        if one.name in new:
            if len(new[one.name]) != len(one.values):
                raise ValueError("as many values as " + one.name + " has")
            copies.append((one, new[one.name]))
        elif one.name not in weights:
            raise ValueError(one.name + " is stale")
    if len(copies) < len(new):
        raise ValueError("some of these are no inputs: " + ", ".join(new))
    for one, values in copies:
        for at, value in enumerate(values):
            one.values[at] = value
    tape.replay()
