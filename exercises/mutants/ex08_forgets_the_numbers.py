# %% [markdown]
"""
Fails: 3

Launches the kernels without what the host gave them.
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
        for kernel, out, inputs, numbers in self.kernels:
            self.device.launch(kernel, out, inputs, [1])
