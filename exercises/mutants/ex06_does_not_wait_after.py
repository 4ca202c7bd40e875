# %% [markdown]
"""
Fails: 2

Goes on while the side stream may still be at work.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        step()
