# %% [markdown]
"""
Fails: 6

Gets rid of the refusal by getting rid of the stream.
"""


# %% tags=["answer:gated"]
def gated(x, gate, up, side):
    return F.silu(x @ gate) * (x @ up)
