# %% [markdown]
"""
Fails: 4

Keeps the tensor and puts other memory under it.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    for name in ("input_ids", "positions", "out_loc"):
        whole = getattr(buffer, name).clone()
        whole[: batch.padded_size] = getattr(batch, name)
        getattr(buffer, name).data = whole
