# %% [markdown]
"""
Fails: 3

Runs the kernels at the first replay and puts the same results back at the later ones.
"""


# %% tags=["answer:Tape"]
class Tape:
    def __init__(self, device):
        self.device, self.kernels = device, []

    def record(self, step):
        self.kernels = []
        self.device.recorder = self.note
        try:
            step()
        finally:
            self.device.recorder = None

    def note(self, kernel, out, inputs, numbers=()):
        self.kernels.append((kernel, out, list(inputs), list(numbers)))

    def replay(self):
        if not hasattr(self, "results"):
            for launch in self.kernels:
                self.device.launch(*launch)
            self.results = [(k[1], list(k[1].values)) for k in self.kernels]
        for out, values in self.results:
            out.values[:] = values
