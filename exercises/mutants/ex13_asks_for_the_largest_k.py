# %% [markdown]
"""
Fails: 4

Asks for the largest k of the batch, so as to sort no more than is needed.
"""

# %% tags=["answer:sample"]
import torch


def sample(logits, temperatures, top_ks, generator):
    values, places = logits.topk(int(top_ks.max()), dim=-1)
    gone = torch.arange(values.shape[1]) >= top_ks[:, None]
    heat = temperatures.clamp(min=1e-4)[:, None]
    probs = (values.masked_fill(gone, float("-inf")) / heat).softmax(dim=-1)
    at = torch.multinomial(probs, 1, generator=generator)
    drawn = places.gather(1, at)[:, 0]
    return torch.where(temperatures == 0, places[:, 0], drawn)
