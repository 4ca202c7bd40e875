"""Exercise 10, plan a pool: who lives together, the least memory that could do, offsets, and segments. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show, written

exercise = Exercise("ex10", "Plan a pool")

Lifetime = tuple[int, int, int]  # bytes, first kernel, last kernel


def together(a: Lifetime, b: Lifetime) -> bool:
    """The right answer, by looking at every kernel."""
    return bool(set(range(a[1], a[2] + 1)) & set(range(b[1], b[2] + 1)))


def peak(lifetimes: Mapping[str, Lifetime]) -> int:
    """The right answer, kernel by kernel."""
    kernels = range(max((last for _, _, last in lifetimes.values()), default=-1) + 1)
    live = [sum(size for size, first, last in lifetimes.values() if first <= at <= last) for at in kernels]
    return max(live, default=0)


def placed(lifetimes: Mapping[str, Lifetime], alignment: int) -> dict[str, int]:
    """The right answer, by trying every aligned offset from the bottom."""
    offsets: dict[str, int] = {}
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        offset = 0
        while any(clash(lifetimes, {**offsets, name: offset}, name, other) for other in offsets):
            offset += alignment
        offsets[name] = offset
    return offsets


def clash(lifetimes: Mapping[str, Lifetime], offsets: Mapping[str, int], one: str, other: str) -> bool:
    """Whether two buffers that exist together share a byte."""
    start, begin = offsets[one], offsets[other]
    apart = start + lifetimes[one][0] <= begin or begin + lifetimes[other][0] <= start
    return not apart and together(lifetimes[one], lifetimes[other])


def some_lifetimes(trial: Trial, count: int = 8, unit: int = 512, kernels: int = 9) -> dict[str, Lifetime]:
    """Buffers of whole units, in an order that is not that of their births."""
    found = {}
    for at in range(count):
        first = trial.rng.randrange(kernels)
        found[f"b{at}"] = (unit * trial.rng.randint(1, 6), first, first + trial.rng.randint(0, 4))
    return found


def judged(trial: Trial, lifetimes: Mapping[str, Lifetime], alignment: int, exact: bool, hint: str = "") -> None:
    """Ask for a plan. It has to be one; with ``exact`` the one that was asked for."""
    right = placed(lifetimes, alignment)
    call = written("plan", (dict(lifetimes), alignment), {})
    got = trial.call("plan", dict(lifetimes), alignment, expected=show(right), call=call)
    if exact:
        trial.equal(got, right, call=call, hint=hint)
        return
    if not isinstance(got, Mapping) or set(got) != set(lifetimes):
        raise Wrong(call, f"an offset for each of {', '.join(lifetimes)}", show(got))
    for name in lifetimes:
        offset = got[name]
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0 or offset % alignment:
            raise Wrong(call, f"a multiple of {alignment} for {name}", show(offset))
    for one in lifetimes:
        for other in lifetimes:
            if one < other and clash(lifetimes, got, one, other):
                found = f"{one} from {got[one]} and {other} from {got[other]}, which share memory at a kernel"
                raise Wrong(call, "buffers that exist together apart", found)


@exercise.check(
    "two buffers exist together if there is a kernel at which both do",
    hints=(
        "Draw the two as bars over the kernels. When do the bars touch?",
        "They are apart only if one's last kernel comes before the other's first.",
        "a[1] <= b[2] and b[1] <= a[2]: each begins before the other has ended.",
    ),
)
def lifetimes_meet(trial: Trial) -> None:
    """Pairs that overlap, contain each other, touch, and are apart."""
    edge = "A kernel reads its inputs while it writes its output."
    for a, b, hint in (
        ((8, 0, 3), (8, 2, 5), ""),
        ((8, 2, 5), (8, 0, 3), ""),
        ((8, 0, 9), (8, 4, 5), "One may begin and end within the life of the other."),
        ((8, 4, 5), (8, 0, 9), "One may begin and end within the life of the other."),
        ((8, 0, 2), (8, 2, 4), edge),
        ((8, 2, 4), (8, 0, 2), edge),
        ((8, 0, 1), (8, 2, 4), ""),
        ((8, 2, 4), (8, 0, 1), ""),
        ((8, 3, 3), (8, 3, 3), edge),
    ):
        trial.expect("alive_together", a, b, expected=together(a, b), hint=hint)
    for _ in range(40):
        a, b = list(some_lifetimes(trial, count=2).values())
        trial.expect("alive_together", a, b, expected=together(a, b))


@exercise.check(
    "the most bytes that exist at one kernel",
    hints=(
        "For one kernel: which buffers exist, and how large are they together?",
        "The fullest kernel is one at which a buffer is born. Look at those, or at all.",
        "max(sum(...) for kernel in ...), with default=0 for a step without buffers.",
    ),
)
def least_memory(trial: Trial) -> None:
    """Fixed and random steps, one without a buffer."""
    trial.expect("peak_live", {"a": (100, 0, 1), "b": (50, 1, 2), "c": (80, 2, 3)}, expected=150)
    trial.expect("peak_live", {"a": (100, 0, 0), "b": (100, 1, 1), "c": (100, 2, 2)}, expected=100)
    trial.expect("peak_live", {"late": (10, 7, 9), "early": (700, 0, 3), "mid": (5, 3, 7)}, expected=705)
    trial.expect("peak_live", {}, expected=0, hint="A step may have no buffers.")
    for _ in range(20):
        lifetimes = some_lifetimes(trial)
        trial.expect("peak_live", lifetimes, expected=peak(lifetimes))


@exercise.check(
    "every buffer has a place, and none overwrites another that exists",
    hints=(
        "Look at the picture: a # is memory that two buffers use at once.",
        "For each buffer, collect the places of those that exist at the same time, and go past them.",
        "Round an offset up to the alignment with -(-offset // alignment) * alignment.",
    ),
)
def a_plan(trial: Trial) -> None:
    """Any plan that is one: aligned, complete, nothing alive overwritten."""
    judged(trial, {"a": (512, 0, 2), "b": (512, 1, 3), "c": (512, 2, 4)}, 512, exact=False)
    judged(trial, {"a": (700, 0, 2), "b": (300, 1, 3), "c": (5, 2, 4)}, 512, exact=False)
    for alignment in (512, 256, 64):
        for _ in range(6):
            lifetimes = some_lifetimes(trial, unit=trial.rng.choice((512, 200, 96)))
            judged(trial, lifetimes, alignment, exact=False)


@exercise.check(
    "a place is used again when its buffer is dead, from the lowest offset up",
    hints=(
        "In the step above, which buffer could lie where query was?",
        "A buffer that is dead is not in the way. Start at offset 0 for each, and go up only past those in the way.",
        "Sort the places in the way by offset; stop at the first gap that is large enough.",
    ),
)
def reuse(trial: Trial) -> None:
    """The plan that was asked for, gaps included, on buffers of whole units in the order of their births."""
    gap = {"a": (512, 0, 9), "b": (1024, 0, 2), "c": (512, 0, 9), "d": (512, 3, 5), "e": (512, 4, 6), "f": (512, 5, 7)}
    small = {"a": (512, 0, 9), "b": (512, 0, 1), "c": (512, 0, 9), "d": (1024, 2, 5), "e": (512, 3, 6)}
    judged(trial, {"a": (512, 0, 1), "b": (512, 2, 3), "c": (1024, 4, 5)}, 512, exact=True)
    judged(trial, gap, 512, exact=True, hint="Between a and c there is room once b is dead.")
    judged(trial, small, 512, exact=True, hint="d is too large for the gap between a and c; e fits.")
    for _ in range(20):
        lifetimes = some_lifetimes(trial)
        births = dict(sorted(lifetimes.items(), key=lambda item: item[1][1]))
        judged(trial, births, 512, exact=True)


@exercise.check(
    "in the order of birth, whatever the order of the dict, for any size and alignment",
    hints=(
        "The dict may name the last buffer first. Who has to be placed first?",
        "Sort the names by the first kernel; sorted keeps the order of those that are equal.",
        "After a buffer of 700 bytes the next may start at 1024 if alignment is 512, and at 704 if it is 64.",
    ),
)
def any_order(trial: Trial) -> None:
    """Shuffled, with odd sizes and other alignments; and unchanged afterwards."""
    judged(trial, {"late": (512, 5, 6), "mid": (1024, 2, 5), "early": (512, 0, 2)}, 512, exact=True)
    judged(trial, {"a": (700, 0, 2), "b": (300, 1, 3), "c": (64, 2, 4)}, 64, exact=True)
    judged(trial, {"a": (100, 0, 9), "b": (412, 0, 1), "c": (512, 0, 9), "d": (413, 2, 3)}, 512, exact=True)
    for alignment in (512, 64, 16):
        for _ in range(10):
            lifetimes = some_lifetimes(trial, unit=trial.rng.choice((512, 200, 96)))
            judged(trial, lifetimes, alignment, exact=True)
    hint = "Sort the names, not the dict; take nothing out of it."
    trial.keeps("plan", some_lifetimes(trial), 512, expected="the dict as it was", hint=hint)


def segments_of(graphs: Sequence[Sequence[int]]) -> int:
    """The right answer, with a mark on each segment."""
    segments: list[int] = []
    for blocks in graphs:
        taken: set[int] = set()
        for block in blocks:
            fits = [at for at, size in enumerate(segments) if at not in taken and size >= block]
            if fits:
                taken.add(min(fits, key=lambda at: segments[at]))
            else:
                segments.append(block)
                taken.add(len(segments) - 1)
    return sum(segments)


@exercise.check(
    "segments are kept from graph to graph, and each is one block's at a time",
    hints=(
        "Which segments does the second graph find? Which of them has it taken already?",
        "Keep one list of segments for all graphs, and for each graph a list of those that are still free.",
        "A new segment belongs to its graph: it is free from the next graph on.",
    ),
)
def segments(trial: Trial) -> None:
    """Largest first, smallest first, and graphs of several blocks."""
    largest_first = [[8192, 2048], [4096, 1024], [2048, 512]]
    for graphs, hint in (
        (largest_first, "The largest graph's segments serve the others."),
        (largest_first[::-1], "A segment that is too small is no help, and it stays."),
        ([[100], [100], [100]], ""),
        ([[100, 100, 100]], "Blocks of one graph exist at the same time."),
        ([[100], [100, 100]], "Blocks of one graph exist at the same time."),
        ([[900, 100], [100, 900]], "A small block takes the smallest segment that is large enough."),
        ([[100, 80], [50, 90]], "A small block takes the smallest segment that is large enough."),
        ([[100, 900], [950, 850]], "What was reserved stays."),
        ([], "No graphs, no memory."),
    ):
        trial.expect("reserved", graphs, expected=segments_of(graphs), hint=hint)
    for _ in range(20):
        graphs = [
            [16 * trial.rng.randint(1, 40) for _ in range(trial.rng.randint(1, 4))]
            for _ in range(trial.rng.randint(1, 6))
        ]
        trial.expect("reserved", graphs, expected=segments_of(graphs))
    trial.keeps("reserved", [[300, 100], [200]], expected="the lists as they were", hint="Sort copies.")
