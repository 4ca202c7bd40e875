# %% [markdown]
"""
Fails: 3

Blames the input, which is written anew as it should be.
"""


# %% tags=["answer:diagnosis_5"]
def diagnosis_5():
    return "overwritten-output", "state.x"
