# %% [markdown]
"""
Fails: 3

Draws from PyTorch's own generator.
"""

# %% tags=["answer:sample"]
import torch


def sample(logits, temperatures, top_ks, generator):
    ranked = logits.sort(dim=-1, descending=True).values
    least = ranked.gather(1, top_ks[:, None] - 1)
    kept = logits.masked_fill(logits < least, float("-inf"))
    probs = (kept / temperatures.clamp(min=1e-4)[:, None]).softmax(dim=-1)
    noise = torch.empty_like(probs).exponential_()
    drawn = (probs / noise).argmax(dim=-1)
    return torch.where(temperatures == 0, logits.argmax(dim=-1), drawn)
