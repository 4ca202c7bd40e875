# %% [markdown]
"""
Fails: 4

Copies the lists when the recording is over, which is too late for those used twice.
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
        self.kernels = [(k, o, list(i), list(n)) for k, o, i, n in self.kernels]

    def note(self, kernel, out, inputs, numbers=()):
        self.kernels.append((kernel, out, inputs, numbers))

    def replay(self):
        for kernel, out, inputs, numbers in self.kernels:
            self.device.launch(kernel, out, inputs, numbers)
