# %% [markdown]
"""
Fails: 6

Forks and never joins.
"""


# %% tags=["answer:gated"]
def gated(x, gate, up, side):
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        right = x @ up
    return F.silu(x @ gate) * right
