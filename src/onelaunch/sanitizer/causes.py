"""From a difference between two recordings to a finding: the kind, the owner's name, the reason and the mend."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from onelaunch.sanitizer.differences import Difference
from onelaunch.sanitizer.outcome import same
from onelaunch.sanitizer.owners import Names, Place, of_values
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import Recording, Refusal
from onelaunch.sanitizer.report import Finding, Kind
from onelaunch.tape import Buffer, TensorRef
from onelaunch.tape.source import Source
from onelaunch.tape.tape import leaves

KIND_OF_RULE: dict[str, Kind] = {
    "host-sync": "host-sync",
    "host-copy": "host-sync",
    "host-numpy": "host-sync",
    "uncapturable-optimizer": "host-sync",
    "library-sync": "host-sync",
    "synchronize": "host-sync",
    "host-data": "host-data",
    "dynamic-shape": "dynamic-shape",
    "unregistered-rng": "unregistered-rng",
    "reseeded-rng": "unregistered-rng",
    "not-emulated": "unregistered-rng",  # only the setting of a generator's state gets as far as this
    "unjoined-stream": "unjoined-stream",
    "isolation": "unjoined-stream",
}


@dataclass
class Evidence:
    """What a difference is judged by: the two recordings, what things were called then and are called now.

    round: number of the round. wrong: whether the replay's results differ from eager's. first: the first kernel that
    computed something else, in words.
    """

    recorded: Recording
    eager: Recording
    playback: Playback
    before: Names
    now: Names
    round: int
    wrong: bool
    first: str = ""
    once: set[int] = field(default_factory=set)  # differences that only the first run has, by id


def of_refusal(refusal: Refusal, names: Names) -> Finding:
    """A broken rule of capture."""
    place = names.of(*refusal.address) if refusal.address is not None else None
    tensor = place.path if place is not None and place.path else refusal.name
    why = f"a capture refuses {refusal.call}: {refusal.why}"
    return Finding(KIND_OF_RULE[refusal.rule], tensor, refusal.where, why, refusal.fix)


def of_difference(d: Difference, evidence: Evidence) -> Finding | None:
    """What a difference means, or None where it does no harm."""
    if d.what == "made-once":
        return _made_once(d, evidence)
    if d.what == "memory":
        return _memory(d, evidence)
    if not evidence.wrong:
        return None
    if d.what in ("kernels", "choice"):
        return _branch(d, evidence)
    return _other_view(d, evidence) or _value(d, evidence)


def harmless(d: Difference, evidence: Evidence) -> bool:
    """Whether a difference is one of memory alone, which holds the same here and there."""
    return d.what == "memory" and not d.written and _same_content(d, evidence)


def of_missing(buffer: Buffer, evidence: Evidence) -> Finding:
    """Memory that the graph reads and nobody owns any more."""
    where = _first_use(buffer, evidence)
    place = evidence.before.of(*_range(buffer)) or _named(buffer, evidence.before)
    moved = _moved(place, evidence)
    if moved is not None:
        return _moved_address(moved, buffer, where, evidence, freed=True)
    name = place.path if place is not None and place.path else evidence.recorded.local_names.get(buffer.address)
    why = (
        f"the graph {_uses(buffer)} {_shape(buffer)} at {buffer.address:#x}, and since round {evidence.round} nobody "
        "owns that memory: a replay gets whatever the allocator put there next"
    )
    return Finding(
        "freed-address",
        name,
        where,
        why,
        "Keep what a graph reads for as long as you replay it: hold it in an attribute, and refill it with copy_().",
    )


def lazy(d: Difference, evidence: Evidence) -> Finding:
    """Work that the captured run did and no later one does."""
    assert d.kernel is not None
    ops = ", ".join(dict.fromkeys(d.was)) if isinstance(d.was, tuple) else d.kernel.name
    name, where = None, d.where
    for kernel in d.gone:
        for ref in kernel.writes:
            place = _place_of(ref, evidence.recorded, evidence.now)
            if name is None and place is not None:
                name, where = place.path, kernel.where
    why = f"the captured run did work that no later run does ({ops}), so every replay does it again"
    return Finding("lazy-init-recorded", name, where, why + (f", to {name}" if name else ""), _WARM)


_WARM = "Do it before the capture: call the step as often as it needs to be ready, or build it where the step is built."


def _made_once(d: Difference, evidence: Evidence) -> Finding:
    place = _place_of(d.now, evidence.eager, evidence.now)
    name = place.path if place is not None else None
    made = _maker(d.was, evidence)
    what = name or "memory"
    why = f"{what} was made by the captured run and is found ready by every later one: it lives in the graph's pool"
    return Finding("lazy-init-recorded", name, made or d.where, why, _WARM)


def _memory(d: Difference, evidence: Evidence) -> Finding | None:
    assert isinstance(d.was, TensorRef)
    buffer = evidence.recorded.tape.buffers[d.was.buffer]
    if evidence.playback.missing(buffer):
        return of_missing(buffer, evidence)
    if not evidence.wrong:
        return None
    if harmless(d, evidence):
        return None
    start, end = _range(buffer, d.was)
    was = evidence.before.of(start, end)
    still = _still_owned(buffer, start, end, evidence)
    fresh = _place_of(d.now, evidence.eager, evidence.now)
    if still is not None:
        other = f", and this step's values are in {fresh.path}" if fresh is not None and fresh.path else ""
        rows = _differing_rows(d, evidence)
        why = (
            f"the graph {'writes' if d.written else 'reads'} {still.path}, whose content in round {evidence.round} is "
            f"not what eager {'writes' if d.written else 'reads'} there{rows}{other}{evidence.first}"
        )
        source = fresh.path if fresh is not None and fresh.path else "the step's values"
        return Finding("stale-input", still.path, d.where, why, f"Before each replay: {still.path}.copy_({source}).")
    moved = _moved(was, evidence)
    if moved is not None or (fresh is not None and fresh.path):
        return _moved_address(moved or fresh, buffer, d.where, evidence, freed=False)  # type: ignore[arg-type]
    why = (
        f"the graph {_uses(buffer)} {_shape(buffer)} at {buffer.address:#x}, which was a tensor of the captured run; "
        f"in round {evidence.round} eager uses another{evidence.first}"
    )
    name = evidence.recorded.local_names.get(buffer.address)
    return Finding(
        "moved-address", name, d.where, why, "Make the tensor once, before the capture, and refill it with copy_()."
    )


def _moved_address(place: Place, buffer: Buffer, where: Source, evidence: Evidence, freed: bool) -> Finding:
    now = evidence.now.places.get(place.path)
    shape = (
        "" if now is None or now.shape == place.shape else f", and is {list(now.shape)} instead of {list(place.shape)}"
    )
    gone = ", which nobody owns any more" if freed else ""
    known = evidence.before.places.get(place.path)
    at = buffer.address if known is None else known.start
    why = (
        f"{place.path} lies elsewhere since round {evidence.round}{shape}; the graph {_uses(buffer)} the address that "
        f"it had at capture, {at:#x}{gone}{evidence.first}"
    )
    fix = f"Keep {place.path} where it is: write into it with copy_() instead of binding a new tensor, or record again."
    return Finding("moved-address", place.path, where, why, fix)


def _branch(d: Difference, evidence: Evidence) -> Finding:
    if d.what == "choice":
        change = f"in round {evidence.round} {d.argument} is another tensor than at capture"
    else:
        was, now = _listed(d.was), _listed(d.now)
        change = f"recorded: {was}; in round {evidence.round} eager runs {now}"
    why = (
        f"the host decided which kernels run, and the graph keeps the decision of the capture: {change}{evidence.first}"
    )
    name = _suspect(evidence)
    return Finding(
        "frozen-branch",
        name,
        d.where,
        why,
        "Compute both and choose on the device (torch.where), or record a graph for each case and choose the graph.",
    )


def _other_view(d: Difference, evidence: Evidence) -> Finding | None:
    """A name that stood for what the graph reads and stands for another part of the same memory now."""
    if d.what != "view":
        return None
    buffer = evidence.recorded.tape.buffers[d.was.buffer]
    was, is_ = _range(buffer, d.was), _range(evidence.eager.tape.buffers[d.now.buffer], d.now)
    for path, place in evidence.before.places.items():
        now = evidence.now.places.get(path)
        if was != is_ and (place.start, place.end) == was and now is not None and (now.start, now.end) == is_:
            return _moved_address(place, buffer, d.where, evidence, freed=False)
    return None


def _view_name(was: TensorRef, now: TensorRef, evidence: Evidence) -> str | None:
    """The name of the plain value that the host made another view from: a size, a place, or the number of a row."""
    pairs = [*zip(was.size, now.size, strict=False), (was.offset, now.offset)]
    for unit in {*was.stride, math.prod(was.size)} - {0, 1}:
        if was.offset % unit == now.offset % unit == 0:
            pairs.append((was.offset // unit, now.offset // unit))
    names = {of_values(evidence.before, evidence.now, a, b) for a, b in pairs if a != b} - {None}
    return names.pop() if len(names) == 1 else None


def _value(d: Difference, evidence: Evidence) -> Finding:
    was, now = d.was, d.now
    name: str | None = None
    if d.what == "view":
        place = _place_of(d.was, evidence.recorded, evidence.before)
        name = place.path if place is not None else evidence.recorded.local_names.get(_address(d, evidence))
        change = f"the view {_view(d.was)} of {name or 'a tensor'}; in round {evidence.round} it is {_view(d.now)}"
        name = _view_name(d.was, d.now, evidence) or name
    elif d.what == "constant":
        was, now = (_constant(ref, r) for ref, r in ((d.was, evidence.recorded), (d.now, evidence.eager)))
        change = f"{d.argument}={was}; in round {evidence.round} it is {now}"
    else:
        change = f"{d.argument}={_short(was)}; in round {evidence.round} it is {_short(now)}"
    if d.what != "view":
        name = _value_name(was, now, evidence)
    operation = "the step's result" if d.kernel is None else d.kernel.name
    why = f"{operation} was recorded with {change}: the host computed it, and a replay runs no Python{evidence.first}"
    return Finding(
        "frozen-value",
        name,
        d.where,
        why,
        "Hold the value in a tensor that stays where it is, fill it before each replay, and let the kernels read it "
        "(index_copy_ or a mask instead of a slice).",
    )


_OF_ADDRESSES = ("stale-input", "moved-address", "freed-address")


_ALIKE = 3  # names that differ only in a number, as layers do, and are still listed one by one


def _pattern(finding: Finding) -> str | None:
    """The finding's tensor with a star for each number."""
    return re.sub(r"\d+", "*", finding.tensor) if finding.tensor else None


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each fault: what repeats in later rounds or on more lines is one, many layers are counted."""
    groups: dict[tuple[object, ...], dict[str | None, Finding]] = {}
    for finding in findings:
        pattern = _pattern(finding)
        # An address is wrong once, however many lines read it; a value or a branch is frozen where it stands.
        whole = pattern is not None and finding.kind in _OF_ADDRESSES
        place = () if whole else (finding.where.file, finding.where.line)
        groups.setdefault((finding.kind, pattern, *place), {}).setdefault(finding.tensor, finding)
    out: list[Finding] = []
    for named in groups.values():
        first, *more = named.values()
        if len(more) < _ALIKE:
            out += [first, *more]
        else:
            out.append(replace(first, why=f"{first.why} (and {len(more)} more like it, {_pattern(first)})"))
    return out


def _still_owned(buffer: Buffer, start: int, end: int, evidence: Evidence) -> Place | None:
    """A name that stood for the recorded memory at capture and does so now. Declared owners decide where they know."""
    there = [
        place
        for path, place in evidence.now.places.items()
        if place.start <= start
        and end <= place.end
        and path in evidence.before.places
        and evidence.before.places[path].start == place.start
    ]
    knew = [place for place in evidence.before.places.values() if place.start <= start and end <= place.end]
    if any(place.declared for place in knew):
        there = [place for place in there if place.declared]
    return min(there, key=lambda place: place.rank, default=None)


def _moved(place: Place | None, evidence: Evidence) -> Place | None:
    """``place`` if its name stands for other memory now."""
    if place is None or not place.path:
        return None
    now = evidence.now.places.get(place.path)
    if now is None:
        return None
    if now.base != place.base or now.start != place.start:
        return place
    by_numpy = now.storage is None or place.storage is None
    return None if by_numpy or now.storage() is place.storage() else place  # type: ignore[misc]  # both are references


def _named(buffer: Buffer, names: Names) -> Place | None:
    found = names.same_storage(buffer.address)
    return min(found, key=lambda place: place.rank, default=None)


def _range(buffer: Buffer, ref: TensorRef | None = None) -> tuple[int, int]:
    if ref is None:
        return buffer.address, buffer.address + buffer.nbytes
    start, end = ref.span
    return buffer.address + start, buffer.address + end


def _place_of(ref: object, recording: Recording, names: Names) -> Place | None:
    if not isinstance(ref, TensorRef):
        return None
    buffer = recording.tape.buffers[ref.buffer]
    place = names.of(*_range(buffer, ref))
    return place if place is not None and place.path else None


def _address(d: Difference, evidence: Evidence) -> int:
    return evidence.recorded.tape.buffers[d.was.buffer].address


def _first_use(buffer: Buffer, evidence: Evidence) -> Source:
    kernels = evidence.recorded.tape.kernels
    return kernels[buffer.first_use or 0].where


def _maker(ref: object, evidence: Evidence) -> Source | None:
    """The line that first wrote a result of the step."""
    if isinstance(ref, TensorRef):
        for kernel in evidence.recorded.tape.kernels:
            if any(written.buffer == ref.buffer for written in kernel.writes):
                return kernel.where
    return None


def _content(d: Difference, evidence: Evidence) -> tuple[Tensor, Tensor] | None:
    if not isinstance(d.was, TensorRef) or not isinstance(d.now, TensorRef) or d.was.size != d.now.size:
        return None
    was, now = evidence.playback.tensor(d.was), evidence.eager.tape.tensor(d.now)
    comparable = was.dtype is now.dtype and was.layout is now.layout is torch.strided
    return (was, now) if comparable else None


def _same_content(d: Difference, evidence: Evidence) -> bool:
    content = _content(d, evidence)
    return content is not None and same(*content)


def _differing_rows(d: Difference, evidence: Evidence) -> str:
    content = _content(d, evidence)
    if content is None or content[0].dim() == 0 or d.written:
        return ""
    a, b = content
    unequal = (a != b).reshape(a.shape[0], -1).any(1)
    if unequal.all():
        return ""
    rows = unequal.nonzero().flatten().tolist()
    return f" (rows {', '.join(map(str, rows[:8]))}{' and more' if len(rows) > 8 else ''})"


def _constant(ref: object, recording: Recording) -> object:
    return recording.tape.tensor(ref).tolist() if isinstance(ref, TensorRef) else ref


def _value_name(was: object, now: object, evidence: Evidence) -> str | None:
    a, b = leaves(was), leaves(now)
    if len(a) != len(b):
        return None
    names = {of_values(evidence.before, evidence.now, x, y) for x, y in zip(a, b, strict=True) if x != y}
    return names.pop() if len(names) == 1 else None


def _suspect(evidence: Evidence) -> str | None:
    """The owner's only plain value that changed since the capture."""
    before, now = evidence.before.values, evidence.now.values
    changed = [path for path, value in before.items() if path in now and now[path] != value]
    return changed[0] if len(changed) == 1 else None


def _uses(buffer: Buffer) -> str:
    return "writes" if buffer.kind == "state" else "reads"


def _shape(buffer: Buffer) -> str:
    return f"{str(buffer.dtype).removeprefix('torch.')}{list(buffer.size)}"


def _listed(names: object) -> str:
    if not isinstance(names, tuple) or not names:
        return "nothing there" if not isinstance(names, int) else f"{names} outputs"
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown


def _view(ref: TensorRef) -> str:
    return f"{list(ref.size)} from element {ref.offset}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
