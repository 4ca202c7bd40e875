# %% [markdown]
"""
Fails: 4

Takes the missing graph for a branch in one.
"""


# %% tags=["answer:diagnosis_8"]
def diagnosis_8():
    return "frozen-branch", "x"
