# %% [markdown]
"""
Fails: 2

Takes the recorder away after the step, but not if the step raises.
"""


# %% tags=["answer:Tape"]
class Tape:
    def __init__(self, device):
        self.device, self.kernels = device, []

    def record(self, step):
        self.kernels = []
        self.device.recorder = self.note
        step()
        self.device.recorder = None

    def note(self, kernel, out, inputs, numbers=()):
        self.kernels.append((kernel, out, list(inputs), list(numbers)))

    def replay(self):
        for kernel, out, inputs, numbers in self.kernels:
            self.device.launch(kernel, out, inputs, numbers)
