"""Which batch sizes to record, and which of them a batch is padded to. Plain Python, no torch and no model.

A recorded step has one batch size. An engine records a few and fills a batch up to the next one with rows that nobody
asked for, so fewer sizes mean more padding, and more sizes mean a longer start and more memory.
"""

from __future__ import annotations

from collections.abc import Sequence

MANY_BYTES = 80 << 30


def default_ceiling(free_bytes: int) -> int:
    """Largest size to record where none is asked for: 256 where more than 80 GiB are free, else 160 (mini-sglang)."""
    return 256 if free_bytes > MANY_BYTES else 160


def capture_sizes(ceiling: int) -> list[int]:
    """1, 2, 4, then every 8, and nothing above ``ceiling``; the ceiling itself is always among them.

    Without that last rule a ceiling of 20 would record up to 16, and batches of 17 to 20 would find no graph.
    """
    sizes = [size for size in (1, 2, 4, *range(8, ceiling + 1, 8)) if size <= ceiling]
    if ceiling >= 1 and ceiling not in sizes:
        sizes.append(ceiling)
    return sizes


def padded_size(size: int, sizes: Sequence[int]) -> int | None:
    """The smallest of the ascending ``sizes`` that holds a batch of ``size``; None where all are too small."""
    return next((recorded for recorded in sizes if recorded >= size), None)
