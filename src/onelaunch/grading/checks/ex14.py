"""Exercise 14, attention that can be captured: gather and mask, held against attention that goes over the requests."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from torch import Tensor

exercise = Exercise("ex14", "Attention that can be captured", seconds=20.0)

WITHIN = 1e-4


@dataclass
class Step:
    """A decode step: what attend gets, and the pages and lengths as numbers."""

    q: Tensor
    k_cache: Tensor
    v_cache: Tensor
    page_table: Tensor
    seq_lens: Tensor

    def args(self) -> tuple[Tensor, ...]:
        """The arguments of attend, in order."""
        return self.q, self.k_cache, self.v_cache, self.page_table, self.seq_lens

    @property
    def page_size(self) -> int:
        return self.k_cache.shape[1]

    def said(self) -> str:
        """The call as the learner knows it."""
        heads, kv_heads = self.q.shape[1], self.k_cache.shape[2]
        return (
            f"attend({heads} heads on {kv_heads}, page_size={self.page_size}, page_table={self.page_table.tolist()}, "
            f"seq_lens={self.seq_lens.tolist()})"
        )


def slots_of(pages: list[int], length: int, page_size: int) -> list[int]:
    """The slots of a request's tokens."""
    return [pages[at // page_size] * page_size + at % page_size for at in range(max(1, length))]


def step_of(
    rng: Random, lengths: list[int], *, page_size: int = 4, max_pages: int = 3, heads: int = 4, kv_heads: int = 2,
    num_pages: int | None = None, dirty: bool = False,
) -> Step:  # fmt: skip
    """A step of requests that are so long. Each owns its pages; entries behind them are pages of others.

    num_pages: of the cache; three more than are needed if None.
    dirty: those entries may be -1 too, and slots that hold no request's token hold NaN or infinity.
    """
    import torch

    head_dim, needed = 3, [max(1, -(-length // page_size)) for length in lengths]
    num_pages = num_pages or sum(needed) + 3
    free = rng.sample(range(num_pages), num_pages)
    table = []
    for count in needed:
        own, free = free[:count], free[count:]
        table.append(own + [rng.choice([*free, -1] if dirty else free) for _ in range(max_pages - count)])
    random = torch.Generator().manual_seed(rng.randrange(1 << 30))
    shape = (num_pages, page_size, kv_heads, head_dim)
    k_cache, v_cache = torch.randn(shape, generator=random), torch.randn(shape, generator=random)
    if dirty:
        used = {slot for row, length in zip(table, lengths, strict=True) for slot in slots_of(row, length, page_size)}
        for slot in set(range(num_pages * page_size)) - used:
            for cache in (k_cache, v_cache):
                cache[slot // page_size, slot % page_size] = rng.choice([float("nan"), float("inf"), float("-inf")])
    q = torch.randn(len(lengths), heads, head_dim, generator=random)
    return Step(
        q, k_cache, v_cache, torch.tensor(table, dtype=torch.int32).view(-1, max_pages),
        torch.tensor(lengths, dtype=torch.int32),
    )  # fmt: skip


def attention(step: Step) -> Tensor:
    """What is right: request by request and head by head, over the tokens that are there."""
    import torch

    out = torch.empty_like(step.q)
    share = step.q.shape[1] // step.k_cache.shape[2]
    keys, values = step.k_cache.flatten(0, 1), step.v_cache.flatten(0, 1)
    for row, (pages, length) in enumerate(zip(step.page_table.tolist(), step.seq_lens.tolist(), strict=True)):
        slots = slots_of(pages, length, step.page_size)
        for head in range(step.q.shape[1]):
            own_keys, own_values = keys[slots, head // share], values[slots, head // share]
            scores = own_keys @ step.q[row, head] * step.q.shape[2] ** -0.5
            out[row, head] = torch.softmax(scores, 0) @ own_values
    return out


def attended(trial: Trial, step: Step, hint: str = "") -> None:
    """Ask attend about a step; what it was given has to stay as it was."""
    right, call = attention(step), step.said()
    before = [one.clone() for one in step.args()]
    with trial.running(call):
        got = trial.answer("attend")(*step.args())
    trial.equal(got, right, call=call, hint=hint, within=WITHIN)
    for name, now, old in zip(("q", "k_cache", "v_cache", "page_table", "seq_lens"), step.args(), before, strict=True):
        trial.equal(now, old, call=f"{name} after {call}", hint="attend changes none of its arguments.")


@exercise.check(
    "locate: each position's slot, or the request's first",
    hints=(
        "Every position gets a slot, also those where there is no token. How many are there in a row?",
        "A slot is the page times page_size, plus the offset in the page: a tensor of page_size offsets, added to all.",
        "slots = (page_table.long()[:, :, None] * page_size + offset).flatten(1), then "
        "torch.where(live, slots, slots[:, :1]).",
    ),
)  # fmt: skip
def located(trial: Trial) -> None:
    """The example of the text, its edges, then random tables."""
    import torch

    fixed = [
        ([[4, 1, -1], [2, 5, 0]], [3, 1], 2),
        ([[3, 1]], [8], 4),  # full
        ([[3, 1]], [4], 4),  # a full page
        ([[2, 0], [5, 5]], [0, 1], 4),  # a dummy
        ([[7]], [1], 1),
    ]
    for _ in range(4):
        page_size, max_pages, batch = trial.rng.randint(1, 5), trial.rng.randint(1, 3), trial.rng.randint(1, 4)
        rows = [[trial.rng.randrange(20) for _ in range(max_pages)] for _ in range(batch)]
        fixed.append((rows, [trial.rng.randint(0, max_pages * page_size) for _ in rows], page_size))
    for rows, lengths, page_size in fixed:
        slots, live = [], []
        for row, length in zip(rows, lengths, strict=True):
            own, longest = slots_of(row, length, page_size), len(row) * page_size
            slots.append(own + own[:1] * (longest - len(own)))
            live.append([at < len(own) for at in range(longest)])
        table, seq_lens = torch.tensor(rows, dtype=torch.int32), torch.tensor(lengths, dtype=torch.int32)
        call = f"locate({rows}, {lengths}, {page_size})"
        got = trial.call("locate", table, seq_lens, page_size, expected="slots and live", call=call)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise Wrong(call, "two tensors: slots and live", show(got), "return slots, live")
        trial.equal(got[1], torch.tensor(live), call=f"live of {call}", hint="A length of 3 is the positions 0, 1, 2.")
        trial.equal(got[0], torch.tensor(slots), call=f"slots of {call}")


@exercise.check(
    "attend: what attention request by request gives",
    hints=(
        "Flatten the two first dimensions of a cache, and a slot is its index. Then scale, mask, softmax, sum.",
        "A masked score is -inf before the softmax. Query head h reads key head h // (heads // kv_heads).",
        "keys = k_cache.flatten(0, 1)[slots] is [batch, max_len, kv_heads, dim]; view q as [batch, kv_heads, -1, dim].",
    ),
)  # fmt: skip
def values(trial: Trial) -> None:
    """In a clean cache: everything but the requests' own tokens is masked, and nothing in it is NaN."""
    attended(trial, step_of(trial.rng, [5], heads=1, kv_heads=1))
    attended(trial, step_of(trial.rng, [12, 1, 4, 7]))
    attended(trial, step_of(trial.rng, [3, 6], heads=6, kv_heads=2, page_size=2))
    attended(trial, step_of(trial.rng, [2, 1, 3], heads=3, kv_heads=3, page_size=1))
    for _ in range(3):
        attended(trial, step_of(trial.rng, [trial.rng.randint(1, 12) for _ in range(trial.rng.randint(1, 5))]))


@exercise.check(
    "attend: nothing of others, NaN or not, and dummies of length 0",
    hints=(
        "A masked token has weight 0. What is 0 times NaN?",
        "Either masked positions read a slot that is the request's own, or torch.where puts 0 for what they read. "
        "And a softmax over nothing is NaN too.",
        "The slots of locate keep away from others' values, and seq_lens.clamp(min=1) from a softmax over nothing.",
    ),
)  # fmt: skip
def clean(trial: Trial) -> None:
    """In a used cache, whose other slots are NaN or infinity, under tables with -1; dummies among the requests."""
    attended(trial, step_of(trial.rng, [5, 2], dirty=True))
    attended(trial, step_of(trial.rng, [7, 0, 1, 0]), hint="0 tokens count as 1: a softmax over nothing is NaN.")
    for _ in range(3):
        lengths = [trial.rng.randint(0, 12) for _ in range(trial.rng.randint(1, 4))]
        attended(trial, step_of(trial.rng, [*lengths, 5], dirty=True))


def recorded(trial: Trial, step: Step) -> tuple[object, Tensor]:
    """A graph of attend on the step's tensors, after a warm-up, and what it writes."""
    from onelaunch import emulator

    attend, graph = trial.answer("attend"), emulator.CUDAGraph()
    with trial.running(f"a warm-up, then a capture of {step.said()}", "a capture that is accepted"):
        attend(*step.args())
        with emulator.graph(graph):
            out = attend(*step.args())
    return graph, out


@exercise.check(
    "in a graph: the capture accepts it",
    hints=(
        "What asks the device for a number? A shape that depends on a length does, and so does a loop over lengths.",
        "No .item(), .tolist(), int(tensor), no indexing with a bool mask, no tensor made from Python numbers.",
        "All sizes follow from page_table.shape and k_cache.shape; lengths appear in position < seq_lens[:, None].",
    ),
)
def captured(trial: Trial) -> None:
    """A capture, and its first replay on the very values that it saw."""
    for lengths in ([5, 2, 9, 0], [1]):
        step = step_of(trial.rng, lengths, dirty=True)
        graph, out = recorded(trial, step)
        replayed(trial, graph, out, step, "a replay")


def replayed(trial: Trial, graph: object, out: Tensor, step: Step, what: str) -> None:
    """Replay, and hold what was written to what is right for the tensors' values now."""
    right, call = attention(step), f"{what} of {step.said()}"
    with trial.running(call):
        graph.replay()  # type: ignore[attr-defined]
    trial.equal(out, right, call=call, within=WITHIN)


@exercise.check(
    "in a graph: a replay reads the pages and lengths of its own step",
    hints=(
        "The right answer for the requests that were there at the capture? Then something was worked out only once.",
        "What Python keeps between two calls (a global, a cache, the longest length so far) is no data of the replay.",
        "Compute the slots and the mask from page_table and seq_lens in every call, without a look at earlier ones.",
    ),
)
def other_requests(trial: Trial) -> None:
    """Other requests in the recorded tensors: longer ones, shorter ones, dummies."""
    fixed = step_of(trial.rng, [2, 3, 1], num_pages=12, dirty=True)
    graph, out = recorded(trial, fixed)
    for lengths in ([9, 12, 5], [1, 0, 4], [trial.rng.randint(0, 12) for _ in range(3)]):
        new = step_of(trial.rng, lengths, num_pages=12, dirty=True)
        for target, source in zip(fixed.args(), new.args(), strict=True):
            target.copy_(source)
        replayed(trial, graph, out, fixed, "a replay, after other requests were copied in,")
