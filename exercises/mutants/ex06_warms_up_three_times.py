# %% [markdown]
"""
Fails: 1

Runs the step three times, as it is done for training with DistributedDataParallel.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(3):
            step()
    cuda.current_stream().wait_stream(side)
