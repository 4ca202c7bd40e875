# %% [markdown]
"""
Fails: 3

Weighs eager steps by their requests.
"""


# %% tags=["answer:eager_share"]
def eager_share(counts, sizes):
    top = max(sizes, default=0)
    live = sum(batch * steps for batch, steps in counts.items())
    eager = sum(batch * steps for batch, steps in counts.items() if batch > top)
    return eager / live if live else 0.0
