# %% [markdown]
"""
Fails: 2

Wraps launch instead of setting a recorder, so that the kernels run too.
"""


# %% tags=["answer:Tape"]
class Tape:
    def __init__(self, device):
        self.device, self.kernels = device, []

    def record(self, step):
        self.kernels = []
        launch = self.device.launch

        def both(kernel, out, inputs, numbers=()):
            self.note(kernel, out, inputs, numbers)
            launch(kernel, out, inputs, numbers)

        self.device.launch = both
        try:
            step()
        finally:
            self.device.launch = launch

    def note(self, kernel, out, inputs, numbers=()):
        self.kernels.append((kernel, out, list(inputs), list(numbers)))

    def replay(self):
        for kernel, out, inputs, numbers in self.kernels:
            self.device.launch(kernel, out, inputs, numbers)
