# %% [markdown]
"""
Fails: 3

Takes the keys for inputs that were not filled.
"""


# %% tags=["answer:diagnosis_5"]
def diagnosis_5():
    return "stale-input", "state.keys"
