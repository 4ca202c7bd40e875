# %% [markdown]
"""
Fails: 4

Sees a counter that Python counts, and stops there.
"""


# %% tags=["answer:diagnosis_7"]
def diagnosis_7():
    return "frozen-value", "state.runs"
