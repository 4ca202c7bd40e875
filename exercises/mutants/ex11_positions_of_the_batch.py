# %% [markdown]
"""
Fails: 1

Names the batch's tensor, which nobody recorded.
"""


# %% tags=["answer:diagnosis_1"]
def diagnosis_1():
    return "stale-input", "batch.positions"
