# %% [markdown]
"""
Fails: 1

Just runs the step.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    step()
    cuda.synchronize()
