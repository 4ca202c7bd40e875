# %% [markdown]
"""
Fails: 2

Asks for the current stream inside of the block, where it is the side stream.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    side = cuda.Stream()
    with cuda.stream(side):
        side.wait_stream(cuda.current_stream())
        step()
        cuda.current_stream().wait_stream(side)
