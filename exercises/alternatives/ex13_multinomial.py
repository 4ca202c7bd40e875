# %% [markdown]
"""
Ranks by a double sort, and lets multinomial draw; warms up before the capture.
"""

# %% tags=["answer:sample"]
import torch


def sample(logits, temperatures, top_ks, generator):
    rank = logits.argsort(dim=-1, descending=True).argsort(dim=-1)
    greedy = temperatures == 0
    heat = torch.where(greedy, torch.ones_like(temperatures), temperatures)
    limit = torch.where(greedy, torch.ones_like(top_ks), top_ks)
    probs = torch.softmax(logits / heat[:, None], dim=-1)
    probs = probs * (rank < limit[:, None])
    return torch.multinomial(probs, 1, generator=generator).squeeze(1)


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    sample(logits, temperatures, top_ks, generator)
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        tokens = sample(logits, temperatures, top_ks, generator)
    return (graph, tokens)
