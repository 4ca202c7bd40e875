"""Finds the steps of a profile: by the marks that somebody put there, else by what the device repeats.

Marks are better, in this order: ``ProfilerStep#N`` of the profiler's own ``step()``, annotations that repeat
(``record_function``; vLLM and SGLang put one around each step), and calls of the outermost ``nn.Module``. Without any,
the sequence of kernels is cut at one that comes back at equal distance. Layers repeat too: only where the host reads
something back in each repetition, as a decode step does with its token, is it called a step.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline.trace_events import ANNOTATION, KERNEL, PYTHON, Profile, Spans

# A mark counts if at least this share of the device's work was launched inside it.
COVERED = 0.5
# Two repetitions are alike if their number of kernels differs by at most this share. Attention may take a kernel more
# when a context grows.
ALIKE = 0.02


@dataclass(frozen=True)
class Cuts:
    """Where steps begin on one device.

    source: what they were found by, in words. first: index of each step's first device activity. last: index behind
    its last. are_steps: False where it might as well be layers.
    """

    source: str
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    are_steps: bool = True


def find(profile: Profile, device: Spans, issued: NDArray[np.float64], reads: NDArray[np.float64]) -> Cuts | None:
    """The steps of one device, or None where nothing marks any.

    device: its activities, by start. issued: when the host began to launch each, NaN where that is unknown. reads: when
    the host read something back or synchronized, ascending.
    """
    if np.isnan(issued).all():  # no launches in the trace: the device's own time has to do
        issued = device.start
    when = np.where(np.isnan(issued), -np.inf, issued)  # launched before the profile began, so in none of its steps
    marks = _marks(profile)
    cuts = [_cut_by_marks(*mark, when) for mark in marks if len(mark[1]) > 1]
    repeated = _cut_by_repetition(profile, device, when, reads)
    if repeated is not None and repeated.are_steps:
        cuts.append(repeated)
    # A single mark says where a step is, and not how many there are.
    cuts += [_cut_by_marks(*mark, when) for mark in marks if len(mark[1]) == 1]
    return next((each for each in (*cuts, repeated) if each is not None), None)


def _marks(profile: Profile) -> list[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Ranges of the host's time that may be steps, best first: (what they are, starts, ends)."""
    marks = []
    for kind, family_of, word in ((ANNOTATION, _annotation, "annotation"), (PYTHON, _module, "call of")):
        family_of_name = [family_of(name) for name in profile.names]
        has_family = np.array([bool(family) for family in family_of_name], bool)
        spans = profile.host.where(profile.host.kind == kind)
        spans = spans.where(has_family[spans.name])
        families: dict[str, list[int]] = {}
        for index, name in enumerate(spans.name.tolist()):
            families.setdefault(family_of_name[name], []).append(index)
        # ProfilerStep first, then what takes longest in all: that is the outermost.
        lasting = {family: float((spans.end - spans.start)[each].sum()) for family, each in families.items()}
        for family in sorted(families, key=lambda family: (family != "ProfilerStep#", -lasting[family]))[:32]:
            kept = _outermost(spans, families[family])
            marks.append((f"{word} {family}", spans.start[kept], spans.end[kept]))
    return marks


def _annotation(name: str) -> str:
    """The family of an annotation: its name with every number made equal."""
    return re.sub(r"\d+", "", name) if name.startswith("ProfilerStep#") else re.sub(r"\d+", "N", name)


def _module(name: str) -> str:
    return name.removeprefix("nn.Module: ") if name.startswith("nn.Module: ") else ""


def _outermost(spans: Spans, members: list[int]) -> list[int]:
    """Those that lie in no other of the same family (a recursive call), in the order of time."""
    kept: list[int] = []
    for index in members:
        if not kept or spans.end[index] > spans.end[kept[-1]]:
            kept.append(index)
    return kept


def _cut_by_marks(
    source: str, start: NDArray[np.float64], end: NDArray[np.float64], when: NDArray[np.float64]
) -> Cuts | None:
    mark = np.searchsorted(start, when, side="right") - 1
    inside = np.flatnonzero((mark >= 0) & (when < end[np.maximum(mark, 0)]))
    if len(inside) < COVERED * np.isfinite(when).sum():
        return None
    # A step is from its first activity to its last, in the device's order; on several streams steps may overlap.
    numbers, first = np.unique(mark[inside], return_index=True)
    _, from_behind = np.unique(mark[inside][::-1], return_index=True)
    if len(numbers) < 2 <= len(start):
        return None
    return Cuts(source, inside[first], inside[len(inside) - 1 - from_behind] + 1)


def _cut_by_repetition(
    profile: Profile, device: Spans, when: NDArray[np.float64], reads: NDArray[np.float64]
) -> Cuts | None:
    """Cut where one kernel comes back at equal distance, counted in kernels, and the device waits before it longest."""
    kernels = np.flatnonzero(device.kind == KERNEL)
    names = device.name[kernels]
    counts = Counter(names.tolist())
    repeated = sorted((count, name) for name, count in counts.items() if count >= 3)
    for count, name in repeated[:64]:
        places = np.flatnonzero(names == name)
        distance = np.diff(places)
        period = int(np.median(distance))
        alike = np.abs(distance - period) <= ALIKE * period
        if period < 2 or alike.mean() < 0.8 or count * period < COVERED * len(names):
            continue
        at = kernels[places] - _shift(device, kernels, places, period)
        at = at[at >= 0]
        if len(at) < 2:
            continue
        steps = bool((np.diff(np.searchsorted(reads, when[at])) > 0).mean() > 0.5)
        source = f"a kernel that comes back every {period:,} kernels"
        return Cuts(source, at, np.append(at[1:], len(device)), steps)
    return None


def _shift(device: Spans, kernels: NDArray[np.int64], places: NDArray[np.int64], period: int) -> int:
    """By how many activities to cut before the kernel that repeats, so that the cut falls into the longest wait."""
    waits = np.maximum(device.start[1:] - np.maximum.accumulate(device.end)[:-1], 0)
    anchors = kernels[places]
    best, shift = -1.0, 0
    for back in range(min(period, 4096)):
        before = anchors - back - 1
        before = before[before >= 0]
        if len(before) * 2 < len(anchors):
            break
        wait = float(np.median(waits[before]))
        if wait > best:
            best, shift = wait, back
    return shift
