# %% [markdown]
"""
Fails: 1

Makes the side stream the current one, and leaves it so.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    cuda.set_stream(side)
    step()
    cuda.default_stream().wait_stream(side)
