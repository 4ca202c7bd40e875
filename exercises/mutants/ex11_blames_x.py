# %% [markdown]
"""
Fails: 4

Names a tensor, where there is none to name.
"""


# %% tags=["answer:diagnosis_8"]
def diagnosis_8():
    return "silent-eager", "x"
