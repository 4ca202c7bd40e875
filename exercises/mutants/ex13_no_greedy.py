# %% [markdown]
"""
Fails: 1

Has no case for temperature 0, and keeps it from dividing by 0 with a temperature that is far too high.
"""

# %% tags=["answer:sample"]
import torch


def sample(logits, temperatures, top_ks, generator):
    ranked = logits.sort(dim=-1, descending=True).values
    least = ranked.gather(1, top_ks[:, None] - 1)
    kept = logits.masked_fill(logits < least, float("-inf"))
    probs = (kept / temperatures.clamp(min=0.5)[:, None]).softmax(dim=-1)
    noise = torch.empty_like(probs).exponential_(generator=generator)
    drawn = (probs / noise).argmax(dim=-1)
    return drawn
