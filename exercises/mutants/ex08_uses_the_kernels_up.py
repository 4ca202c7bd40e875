# %% [markdown]
"""
Fails: 3

Takes each kernel off the list as it launches it: the second replay is empty.
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
        while self.kernels:
            self.device.launch(*self.kernels.pop(0))
