# %% [markdown]
"""
Fails: 6

Removes the wait that was refused, and with it half of the work.
"""


# %% tags=["answer:gated"]
def gated(x, gate, up, side):
    with cuda.stream(side):
        right = x @ up
    return F.silu(x @ gate) * right
