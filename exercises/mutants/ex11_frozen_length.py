# %% [markdown]
"""
Fails: 2

Takes a decision for a number.
"""


# %% tags=["answer:diagnosis_4"]
def diagnosis_4():
    return "frozen-value", "state.longest"
