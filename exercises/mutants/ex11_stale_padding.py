# %% [markdown]
"""
Fails: 3

Takes padding that is not reset for the fault; reset or not, it must not matter.
"""


# %% tags=["answer:diagnosis_6"]
def diagnosis_6():
    return "stale-input", "rows"
