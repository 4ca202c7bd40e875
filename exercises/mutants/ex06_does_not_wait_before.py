# %% [markdown]
"""
Fails: 2

Starts on the side stream while the current stream may still be at work.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    side = cuda.Stream()
    with cuda.stream(side):
        step()
    cuda.current_stream().wait_stream(side)
