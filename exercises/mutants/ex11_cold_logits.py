# %% [markdown]
"""
Fails: 2

Blames the tensor beside the number.
"""


# %% tags=["answer:diagnosis_3"]
def diagnosis_3():
    return "frozen-value", "state.logits"
