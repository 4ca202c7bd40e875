"""What the museum does not show, because no CPU can: said plainly instead of something that looks like it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NotShown:
    """Reports without an exhibit. what: what happened. why: why it cannot be reproduced here."""

    what: str
    reports: tuple[str, ...]
    why: str


NOT_SHOWN = (
    NotShown(
        "A process hangs at its end, because graphs with collectives in them outlive the communicator.",
        ("pytorch/pytorch#115388", "NVIDIA-NeMo/Megatron-Bridge#3595"),
        "There is no NCCL here, and nothing that counts the graphs of a communicator.",
    ),
    NotShown(
        "Captures take long, most of it in garbage collections.",
        (
            "pytorch/pytorch#158193",
            "sgl-project/sglang#8577",
            "vllm-project/vllm#24128",
        ),
        "Nothing is wrong with what is replayed, so there is nothing to find. What the collector takes can be measured, and is, "
        "below: it is work of the host, the same with and without a GPU.",
    ),
    NotShown(
        "A second run with the same shapes is very slow, because it is the one that records.",
        ("pytorch/pytorch#120309",),
        "It is a matter of time, and times here are not a GPU's.",
    ),
    NotShown(
        "Out of memory, in fact.",
        (
            "vllm-project/vllm#57475",
            "vllm-project/vllm#19186",
            "vllm-project/vllm#17462",
        ),
        "A pool that grows can be shown, and is; the end of a GPU's memory cannot.",
    ),
    NotShown(
        "A tensor inside of one captured piece is held weakly, and a piece that is captured later gets its memory.",
        ("sgl-project/sglang#22218", "sgl-project/sglang#37606"),
        "It takes a reference that does not count as one, which needs code in C++. Chapter 5 shows how graphs that share a pool "
        "overwrite each other, and tape.overwrites() predicts it.",
    ),
    NotShown(
        "A communication buffer of two graphs plays two roles at one address, and a cache line is stale.",
        ("ROCm/mori#559",),
        "It takes caches that are not coherent, and transfers beside the kernels.",
    ),
)
