"""From a broken rule or a difference between two recordings to findings: the kind, the owner's name, the reason, the
mend. What is about memory is in ``addresses``, what is about Python's decisions in ``frozen``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from onelaunch.sanitizer import addresses, frozen
from onelaunch.sanitizer.differences import Difference
from onelaunch.sanitizer.evidence import Evidence, place_of
from onelaunch.sanitizer.owners import Names
from onelaunch.sanitizer.recording import Refusal
from onelaunch.sanitizer.report import Finding, Kind

KIND_OF_RULE: dict[str, Kind] = {
    "host-sync": "host-sync",
    "host-copy": "host-sync",
    "host-numpy": "host-sync",
    "uncapturable-optimizer": "host-sync",
    "library-sync": "host-sync",
    "synchronize": "host-sync",
    "graph-destroyed": "host-sync",
    "host-data": "host-data",
    "dynamic-shape": "dynamic-shape",
    "unregistered-rng": "unregistered-rng",
    "reseeded-rng": "unregistered-rng",
    "not-emulated": "unregistered-rng",  # only the setting of a generator's state gets as far as this
    "unjoined-stream": "unjoined-stream",
    "isolation": "unjoined-stream",
}
_WARM = (
    "Do it before the capture: call the step as often as it needs to be ready, on the stream and in the mode that will "
    "be captured, or build it where the step is built."
)


def of_refusal(refusal: Refusal, names: Names) -> Finding:
    """A broken rule of capture."""
    place = names.of(*refusal.address) if refusal.address is not None else None
    tensor = place.path if place is not None and place.path else refusal.name
    why, fix = f"a capture refuses {refusal.call}: {refusal.why}", refusal.fix
    if refusal.rule == "unjoined-stream":
        why = refusal.why
    elif refusal.rule == "unregistered-rng":
        fix += " The sanitizer takes a generator among owners as registered."
    if refusal.where.function == "__del__":
        why += "; the end of an object called it, which may be wherever the garbage collector runs"
        fix = "Let such objects go before the capture (gc.collect()), and keep the collector off until it has ended."
    if refusal.thread is not None:
        why += f"; it was called in another thread, {refusal.thread!r}"
        fix = "Let that thread rest during the capture, or capture with capture_error_mode='thread_local'."
    return Finding(KIND_OF_RULE[refusal.rule], tensor, refusal.where, why, fix)


def of_difference(d: Difference, evidence: Evidence) -> Finding | None:
    """What a difference means, or None where it does no harm."""
    if d.what == "made-once":
        return _made_once(d, evidence)
    if d.what == "memory":
        return addresses.of_memory(d, evidence)
    if not evidence.wrong:
        return None
    if d.what in ("kernels", "choice"):
        return frozen.of_branch(d, evidence)
    if d.what == "view":
        return frozen.of_view(d, evidence)
    return frozen.of_constant(d, evidence) if d.what == "constant" else frozen.of_number(d, evidence)


def lazy(d: Difference, evidence: Evidence) -> Finding:
    """Work that the captured run did and no later one does."""
    assert d.kernel is not None
    ops = ", ".join(dict.fromkeys(d.was)) if isinstance(d.was, tuple) else d.kernel.name
    name, where = None, d.where
    for kernel in d.gone:
        for ref in kernel.writes:
            place = place_of(ref, evidence.recorded, evidence.now)
            if name is None and place is not None:
                name, where = place.path, kernel.where
    why = f"the captured run did work that no later run does ({ops}), so every replay does it again"
    return Finding("lazy-init-recorded", name, where, why + (f", to {name}" if name else ""), _WARM)


def _made_once(d: Difference, evidence: Evidence) -> Finding:
    place = place_of(d.now, evidence.eager, evidence.now)
    name = place.path if place is not None else None
    what = name or "memory"
    why = f"{what} was made by the captured run and is found ready by every later one: it lives in the graph's pool"
    return Finding("lazy-init-recorded", name, evidence.maker(d.was) or d.where, why, _WARM)


_OF_ADDRESSES = ("stale-input", "moved-address", "freed-address")
_ALIKE = 3  # names that differ only in a number, as layers do, and are still listed one by one


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


def _pattern(finding: Finding) -> str | None:
    """The finding's tensor with a star for each number."""
    return re.sub(r"\d+", "*", finding.tensor) if finding.tensor else None
