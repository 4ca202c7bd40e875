"""Findings about memory: it holds something else than eager reads, its name stands for other memory by now, or it is
nobody's any more."""

from __future__ import annotations

from onelaunch.sanitizer.differences import Difference
from onelaunch.sanitizer.evidence import Evidence, addresses, place_of
from onelaunch.sanitizer.owners import Names, Place
from onelaunch.sanitizer.report import Finding
from onelaunch.tape import Buffer, TensorRef
from onelaunch.tape.source import Source


def of_missing(buffer: Buffer, evidence: Evidence) -> Finding:
    """Memory that the graph reads and nobody owns any more."""
    where = evidence.first_use(buffer)
    place = evidence.before.of(*addresses(buffer)) or _named(buffer, evidence.before)
    moved = _moved(place, evidence)
    if moved is not None:
        return of_moved(moved, buffer, where, evidence, freed=True)
    name = place.path if place is not None and place.path else evidence.recorded.local_names.get(buffer.address)
    why = (
        f"the graph {_uses(buffer)} {_shape(buffer)} at {buffer.address:#x}, and since round {evidence.round} nobody "
        "owns that memory: a replay gets whatever the allocator put there next"
    )
    fix = "Keep what a graph reads for as long as you replay it: hold it in an attribute, and refill it with copy_()."
    return Finding("freed-address", name, where, why, fix)


def of_memory(d: Difference, evidence: Evidence) -> Finding | None:
    """An argument that is other memory than at capture; None where that does no harm."""
    assert isinstance(d.was, TensorRef)
    buffer = evidence.buffer(d.was)
    if evidence.playback.missing(buffer):
        return of_missing(buffer, evidence)
    if not evidence.wrong or evidence.harmless(d):
        return None
    start, end = addresses(buffer, d.was)
    still = _still_owned(start, end, evidence)
    fresh = place_of(d.now, evidence.eager, evidence.now)
    if still is not None:
        return _stale(d, still, fresh, evidence)
    moved = _moved(evidence.before.of(start, end), evidence) or fresh
    if moved is not None:
        return of_moved(moved, buffer, d.where, evidence, freed=False)
    why = (
        f"the graph {_uses(buffer)} {_shape(buffer)} at {buffer.address:#x}, which was a tensor of the captured run; "
        f"in round {evidence.round} eager uses another{evidence.first}"
    )
    fix = "Make the tensor once, before the capture, and refill it with copy_()."
    return Finding("moved-address", evidence.local_name(d.was), d.where, why, fix)


def _stale(d: Difference, still: Place, fresh: Place | None, evidence: Evidence) -> Finding:
    source = "a tensor that has no name" if fresh is None else fresh.path
    if d.written:
        why = (
            f"the graph writes to {still.path}, and in round {evidence.round} eager writes to {source}{evidence.first}"
        )
    else:
        why = (
            f"the graph reads {still.path}, and in round {evidence.round} eager reads {source}, which holds something "
            f"else{evidence.differing_rows(d)}{evidence.first}"
        )
    copied = "the step's values" if fresh is None else fresh.path
    return Finding("stale-input", still.path, d.where, why, f"Before each replay: {still.path}.copy_({copied}).")


def of_moved(place: Place, buffer: Buffer, where: Source, evidence: Evidence, freed: bool) -> Finding:
    """A name that stands for other memory than at capture. freed: whether nobody owns that of the capture."""
    now, known = evidence.now.places.get(place.path), evidence.before.places.get(place.path)
    resized = now is not None and now.shape != place.shape
    shape = f", and is {list(now.shape)} instead of {list(place.shape)}" if resized and now is not None else ""
    why = (
        f"{place.path} lies elsewhere since round {evidence.round}{shape}; the graph {_uses(buffer)} the address that "
        f"it had at capture, {buffer.address if known is None else known.start:#x}"
        f"{', which nobody owns any more' if freed else ''}{evidence.first}"
    )
    if resized:
        fix = (
            f"Make {place.path} once, as large as it may become, and write into a part of it with copy_(); what does "
            "not fit needs a graph of its own, or runs eagerly."
        )
    else:
        fix = (
            f"Keep {place.path} where it is: write into it with copy_() instead of binding a new tensor, or record "
            "again."
        )
    return Finding("moved-address", place.path, where, why, fix)


def _still_owned(start: int, end: int, evidence: Evidence) -> Place | None:
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


def _uses(buffer: Buffer) -> str:
    return "writes" if buffer.kind == "state" else "reads"


def _shape(buffer: Buffer) -> str:
    return f"{str(buffer.dtype).removeprefix('torch.')}{list(buffer.size)}"
