# %% [markdown]
"""
Fails: 3

Replays by calling the step again: a rerun with a list beside it.
"""


# %% tags=["answer:Tape"]
class Tape:
    def __init__(self, device):
        self.device, self.kernels = device, []

    def record(self, step):
        self.kernels, self.step = [], step
        self.device.recorder = self.note
        try:
            step()
        finally:
            self.device.recorder = None

    def note(self, kernel, out, inputs, numbers=()):
        self.kernels.append((kernel, out, list(inputs), list(numbers)))

    def replay(self):
        self.step()
