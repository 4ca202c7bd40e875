# %% [markdown]
"""
Fails: 1

Sees old pages in the replay, and not why they are old.
"""


# %% tags=["answer:diagnosis_2"]
def diagnosis_2():
    return "stale-input", "fixed.table"
