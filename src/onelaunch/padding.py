"""Which batch sizes to record, what a batch is padded to, and what that wastes. Plain Python, no torch and no model.

A recorded step has one batch size. An engine records a few and fills a batch up to the next one with rows that nobody
asked for, so fewer sizes mean more padding, and more sizes mean a longer start and more memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

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
    at = bisect_left(sizes, size)
    return sizes[at] if at < len(sizes) else None


@dataclass(frozen=True)
class CaptureList:
    """The sizes that an engine records, ascending, and what it does with a batch that is none of them.

    pads: whether it fills a batch up to the next size. fails_up_to: a batch above the list and up to this one finds no
    graph and raises; 0 where it runs eagerly instead.
    """

    engine: str
    sizes: tuple[int, ...]
    pads: bool = True
    fails_up_to: int = 0

    def run_as(self, size: int) -> int | str:
        """What becomes of a decode batch of ``size``: the size that it is replayed at, ``"eager"`` or ``"raises"``."""
        padded = padded_size(size, self.sizes)
        if padded is not None and (self.pads or padded == size):
            return padded
        return "raises" if padded is None and size <= self.fails_up_to else "eager"


def mini_sglang(max_bs: int = 256) -> CaptureList:
    """mini-sglang ``20fcd7f``: 1, 2, 4, then every 8 up to ``max_bs``.

    A ``max_bs`` of 3 still records 4. One of 20 records up to 16: batches of 17 to 20 run eagerly and nothing says so.
    """
    return CaptureList("mini-sglang", (1, 2, 4, *range(8, max_bs + 1, 8)) if max_bs >= 1 else ())


def nano_vllm(max_num_seqs: int = 512) -> CaptureList:
    """nano-vllm ``bb823b3``: 1, 2, 4, 8, then every 16 up to ``max_num_seqs``, 512 at most.

    With 20, it records up to 16, and a batch of 17 raises StopIteration, as does any from there to 512. Above 512 it
    runs eagerly.
    """
    ceiling = min(max_num_seqs, 512)
    return CaptureList("nano-vllm", (1, 2, 4, 8, *range(16, ceiling + 1, 16)), fails_up_to=512)


def sglang(max_bs: int = 256) -> CaptureList:
    """SGLang 0.5.23: 1, 2, 4, 8, 12, then every 8 to 256, every 16 to 512, every 32 after; ``max_bs`` is added."""
    rule = (1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, max_bs + 1, 32))
    return CaptureList("SGLang", tuple(sorted({size for size in rule if size <= max_bs} | {max_bs})))


def vllm(max_num_seqs: int = 256) -> CaptureList:
    """vLLM of mid-2026: 1, 2, 4, then every 8 to 248, every 16 from 256, up to twice ``max_num_seqs`` and 512 at most.

    One token a request is assumed. Twice, so that every batch is below the top although the top may be left out.
    """
    ceiling = min(2 * max_num_seqs, 512)
    rule = (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
    return CaptureList("vLLM", tuple(size for size in rule if size <= ceiling))


def tensorrt_llm(max_batch_size: int = 128, padding: bool = False) -> CaptureList:
    """TensorRT-LLM ``7b437aaa``: 1, 2, 4, then every 8 to 128 with padding; 1 to 31, 32, 64, 128 without, the default.

    ``max_batch_size`` is added. Above 128 its versions differ, and nothing else is added here. Without padding a batch
    that is not in the list runs eagerly.
    """
    rule = (1, 2, 4, *range(8, 129, 8)) if padding else (*range(1, 32), 32, 64, 128)
    sizes = tuple(sorted({size for size in rule if size <= max_batch_size} | {max_batch_size}))
    return CaptureList(f"TensorRT-LLM, {'padding' if padding else 'exact'}", sizes, pads=padding)


@dataclass(frozen=True)
class Waste:
    """What padding costs a service. live_rows: rows that requests asked for, in steps that are replayed. padded_rows:
    the dummies beside them. eager_steps: steps above the list, which run without a graph."""

    live_rows: int
    padded_rows: int
    eager_steps: int

    @property
    def share(self) -> float:
        """Dummy rows for each live row. 37 requests run as 48 waste 48 / 37 - 1, or 0.30."""
        return self.padded_rows / self.live_rows if self.live_rows else 0.0


def waste(counts: Mapping[int, int], sizes: Sequence[int]) -> Waste:
    """What the ascending ``sizes`` waste. counts: batch size -> how many decode steps had it."""
    return waste_of(counts, CaptureList("", tuple(sizes)))


def waste_of(counts: Mapping[int, int], made: CaptureList) -> Waste:
    """What an engine's list wastes. Where it does not pad, a batch of no recorded size is an eager step, as is one for
    which it would raise."""
    live = padded = eager = 0
    for size, steps in counts.items():
        run_as = made.run_as(size)
        if isinstance(run_as, str):
            eager += steps
        else:
            live += size * steps
            padded += (run_as - size) * steps
    return Waste(live, padded, eager)


def best_sizes(counts: Mapping[int, int], budget: int, ceiling: int | None = None) -> list[int]:
    """The list of at most ``budget`` sizes that holds every batch and computes the fewest padded rows. Exact.

    counts: batch size -> how many decode steps had it. ceiling: a size that has to be in the list, such as the most
    requests that may run; the largest batch if None. Raises ValueError where there is nothing to choose from.

    The best list has only sizes that occur. So sort these, and let ``rows[j]`` be the fewest rows that the j smallest
    can be computed with if the largest of them is recorded. With one size more, that is the best cut i below j: what
    lies under i as before, what lies between i and j at the size of j. For each i that is a straight line in the size
    of j, and only the lowest line counts, so one walk over the lines finds all cuts: O(budget * n).
    """
    batches = sorted({size for size, steps in counts.items() if steps} | ({ceiling} if ceiling is not None else set()))
    if budget < 1 or not batches or batches[0] < 1 or any(steps < 0 for steps in counts.values()):
        raise ValueError(
            f"a list needs a budget of at least 1 and batches of at least 1 row; found {budget=}, {dict(counts)}"
        )
    if ceiling is not None and batches[-1] > ceiling:
        raise ValueError(f"ceiling={ceiling} leaves out batches of up to {batches[-1]} rows")
    steps_below = [0, *accumulate(counts.get(size, 0) for size in batches)]
    rows = [0, *(size * steps for size, steps in zip(batches, steps_below[1:], strict=True))]
    cuts: list[list[int]] = []  # for each further size: where its best cut is
    for _ in range(min(budget, len(batches)) - 1):
        cut = _best_cuts(rows, batches, steps_below)
        rows = [
            0,
            *(rows[cut[j]] + batches[j - 1] * (steps_below[j] - steps_below[cut[j]]) for j in range(1, len(rows))),
        ]
        cuts.append(cut)
    sizes, j = [], len(batches)
    for cut in [*reversed(cuts), [0] * len(rows)]:
        if j == 0:
            break
        sizes.append(batches[j - 1])
        j = cut[j]
    return sizes[::-1]


def _best_cuts(rows: Sequence[int], batches: Sequence[int], steps_below: Sequence[int]) -> list[int]:
    """For each j the i below it with the least ``rows[i] - batches[j - 1] * steps_below[i]``; the lowest of equal ones.

    ``lines`` are those that are lowest somewhere, left to right; each is steeper than the one before.
    """
    cut = [0] * len(rows)
    lines: list[int] = []
    at = 0  # lines[at] is the lowest at the size of j
    for j in range(1, len(rows)):
        new = j - 1
        while len(lines) - at >= 2:
            first, second = lines[-2], lines[-1]
            # Where the new line passes the first, the second is no longer below it: it is lowest nowhere.
            if (rows[new] - rows[first]) * (steps_below[second] - steps_below[first]) > (rows[second] - rows[first]) * (
                steps_below[new] - steps_below[first]
            ):
                break
            lines.pop()
        lines.append(new)
        size = batches[j - 1]
        while at + 1 < len(lines) and (
            rows[lines[at + 1]] - size * steps_below[lines[at + 1]] < rows[lines[at]] - size * steps_below[lines[at]]
        ):
            at += 1
        cut[j] = lines[at]
    return cut


def memory_bytes(sizes: Sequence[int], *, row_bytes: int, graph_bytes: int) -> int:
    """Bytes that a list takes from the KV cache, where all graphs share a pool and fixed buffers.

    row_bytes: pool and buffers for one row, so the largest size sets them. graph_bytes: what each graph takes for
    itself. Both depend on model and engine: measure them on yours.
    """
    return max(sizes, default=0) * row_bytes + len(sizes) * graph_bytes
