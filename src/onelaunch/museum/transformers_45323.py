"""The longest length of the batch is a Python number, and a kernel gets it."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(tensor: bool) -> Case:
    batch = SimpleNamespace(lens=torch.zeros(2), longest=0)
    longest, places = torch.zeros(1), torch.arange(8.0)

    def prepare(i: int) -> None:
        batch.lens.copy_(torch.tensor([2.0, 1.0]) + 2 * i)
        batch.longest = 2 + 2 * i
        longest.fill_(batch.longest)

    def step() -> torch.Tensor:
        limit = longest if tensor else batch.longest
        seen = (places < limit) & (places < batch.lens[:, None])
        return seen.sum(1)  # to how many tokens each request attends

    return Case(prepare, step, owners={"batch": batch, "longest": longest})


def broken() -> Case:
    return build(tensor=False)


def mended() -> Case:
    return build(tensor=True)


EXHIBIT = Exhibit(
    key="transformers-45323",
    title="The longest length is frozen",
    topic="frozen value or branch",
    reports=("huggingface/transformers#45323",),
    seen="Graphs were kept by the sizes of their tensors. The kernel of FlashAttention also got max_seqlen_k, a Python "
    "number. Two batches of one size shared a graph, and GSM8K fell from 0.45 to 0.23.",
    mend="The number goes into the key of the graph, or onto the device, or is the largest possible one.",
    silent=True,
    findings=(("frozen-value", "batch.longest"),),
    broken=broken,
    mended=mended,
)
