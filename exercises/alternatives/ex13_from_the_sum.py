# %% [markdown]
"""
Sorts, adds the probabilities up, and looks where one uniform number falls.
"""

# %% tags=["answer:sample"]
import torch


def sample(logits, temperatures, top_ks, generator):
    ranked, order = torch.sort(logits, dim=-1, descending=True)
    place = torch.arange(logits.shape[1], device=logits.device)
    limit = top_ks.masked_fill(temperatures == 0, 1)
    ranked = torch.where(place < limit[:, None], ranked, float("-inf"))
    heat = temperatures.masked_fill(temperatures == 0, 1.0)
    total = torch.softmax(ranked / heat[:, None], dim=-1).cumsum(dim=-1)
    point = torch.empty_like(temperatures).uniform_(generator=generator)
    behind = (total <= point[:, None]).sum(dim=-1, keepdim=True)
    behind = torch.minimum(behind, limit[:, None] - 1)
    return order.gather(1, behind)[:, 0]
