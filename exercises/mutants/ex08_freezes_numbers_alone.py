# %% [markdown]
"""
Fails: 4

Copies the numbers and forgets that the list of inputs is the host's too.
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
        self.kernels.append((kernel, out, inputs, list(numbers)))

    def replay(self):
        for kernel, out, inputs, numbers in self.kernels:
            self.device.launch(kernel, out, inputs, numbers)
