# %% [markdown]
"""
Fails: 1

Sees that batch.positions is another tensor each time, and takes the name for the memory.
"""


# %% tags=["answer:diagnosis_1"]
def diagnosis_1():
    return "moved-address", "batch.positions"
