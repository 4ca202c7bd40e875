"""From logits to tokens. Each request draws with its own generator, so that its text does not depend on who shares
the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from onelaunch.engine.core import Req, SamplingParams


def sample(logits: Tensor, reqs: list[Req]) -> list[int]:
    """Choose the next token of every request.

    logits: ``[requests, vocab]`` float32. Returns one token id per request; this is where the host waits for the
    device.
    """
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    for row, req in enumerate(reqs):
        if not req.sampling_params.is_greedy:
            tokens[row] = _draw(logits[row], req)
    return tokens


def probabilities(logits: Tensor, params: SamplingParams) -> Tensor:
    """The distribution that ``params`` asks for, over ``logits`` ``[vocab]``: temperature, then top_k, then top_p."""
    # Shifted before the division: a tiny temperature then gives -inf for the others, not inf - inf.
    scaled = (logits - logits.max()) / params.temperature
    order = scaled.argsort(descending=True, stable=True)
    if params.top_k > 0:
        order = order[: params.top_k]
    kept = torch.softmax(scaled[order], dim=-1)
    if params.top_p < 1.0:
        before = kept.cumsum(-1) - kept  # probability of all that are likelier
        kept = torch.where(before < params.top_p, kept, 0.0)
        kept = kept / kept.sum()
    return torch.zeros_like(logits).scatter_(0, order, kept)


def _draw(logits: Tensor, req: Req) -> int:
    if req.generator is None:
        req.generator = torch.Generator(device=logits.device)
        seed = req.sampling_params.seed
        if seed is None:
            req.generator.seed()
        else:
            req.generator.manual_seed(seed)
    return int(torch.multinomial(probabilities(logits, req.sampling_params), 1, generator=req.generator))
