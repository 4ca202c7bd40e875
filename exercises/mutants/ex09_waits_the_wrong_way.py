# %% [markdown]
"""
Fails: 6

Lets the current stream wait for the side stream, both times.
"""


# %% tags=["answer:gated"]
def gated(x, gate, up, side):
    main = cuda.current_stream()
    main.wait_stream(side)
    with cuda.stream(side):
        right = x @ up
    left = F.silu(x @ gate)
    main.wait_stream(side)
    return left * right
