"""Findings about what Python decided: a number, the view into a tensor, a constant, or which kernels run."""

from __future__ import annotations

import math

from onelaunch.sanitizer.addresses import of_moved
from onelaunch.sanitizer.differences import Difference
from onelaunch.sanitizer.evidence import Evidence, addresses, place_of
from onelaunch.sanitizer.owners import of_values
from onelaunch.sanitizer.recording import Recording
from onelaunch.sanitizer.report import Finding
from onelaunch.tape import TensorRef
from onelaunch.tape.tape import leaves

_KEEP_A_GRAPH = "or record a graph for each {} and choose the graph"


def of_branch(d: Difference, evidence: Evidence) -> Finding:
    """Other kernels than at capture, or other results of the step handed on."""
    if d.what == "choice":
        change = f"in round {evidence.round} {d.argument} is another tensor than at capture"
    else:
        was, now = _listed(d.was), _listed(d.now)
        change = f"recorded: {was}; in round {evidence.round} eager runs {now}"
    why = (
        f"the host decided which kernels run, and the graph keeps the decision of the capture: {change}{evidence.first}"
    )
    fix = f"Compute both and choose on the device (torch.where), {_KEEP_A_GRAPH.format('case')}."
    return Finding("frozen-branch", _suspect(evidence), d.where, why, fix)


def of_view(d: Difference, evidence: Evidence) -> Finding:
    """Another part of the same memory than at capture."""
    moved = _renamed(d, evidence)
    if moved is not None:
        return moved
    place = place_of(d.was, evidence.recorded, evidence.before)
    whole = place.path if place is not None else evidence.local_name(d.was)
    change = f"the view {_view(d.was)} of {whole or 'a tensor'}; in round {evidence.round} it is {_view(d.now)}"
    name = _view_name(d.was, d.now, evidence)
    held = f"Hold {name or 'the place'} in a tensor that stays where it is and is filled before each replay, "
    if d.was.size != d.now.size:
        all_of = f"all of {whole or 'the tensor'}"
        how = f"let the kernels work on {all_of}, and mask with it what does not count (torch.where)"
    elif d.written:
        how = "and write to the place that it names with index_copy_"
    else:
        how = "and read the place that it names with index_select"
    fix = f"{held}{how}; {_KEEP_A_GRAPH.format('view')}."
    return _frozen(d, change, name or whole, fix, evidence)


def of_constant(d: Difference, evidence: Evidence) -> Finding:
    """Numbers that the host wrote into a tensor of the step's."""
    was, now = (_numbers(ref, r) for ref, r in ((d.was, evidence.recorded), (d.now, evidence.eager)))
    fix = "Make the tensor once, before the capture, and fill it with copy_() before each replay."
    change = f"{d.argument}={_short(was)}; in round {evidence.round} it is {_short(now)}"
    return _frozen(d, change, _value_name(was, now, evidence), fix, evidence)


def of_number(d: Difference, evidence: Evidence) -> Finding:
    """A plain argument: a number, a flag, a size."""
    name = _value_name(d.was, d.now, evidence)
    change = f"{d.argument}={_short(d.was)}; in round {evidence.round} it is {_short(d.now)}"
    if d.kernel is None:
        fix = (
            "Return a tensor that a kernel fills: what Python returns, only the captured call did. Or compute it "
            "outside of the step."
        )
    elif _takes_tensor(d):
        fix = (
            f"Give the operator a tensor in place of the number: torch.full((), {name or 'number'}), made once and "
            f"filled with fill_() before each replay; {_KEEP_A_GRAPH.format('value')}."
        )
    else:
        fix = "Record a graph for each value and choose the graph, or run a step with another value eagerly."
    return _frozen(d, change, name, fix, evidence)


def _takes_tensor(d: Difference) -> bool:
    """Whether the operator would take a tensor where it was given this number."""
    arguments = d.kernel.op._schema.arguments if d.kernel is not None else ()
    return any(a.name == d.argument and str(a.type) in ("number", "Tensor") for a in arguments)


def _frozen(d: Difference, change: str, name: str | None, fix: str, evidence: Evidence) -> Finding:
    operation = "the step's result" if d.kernel is None else d.kernel.name
    why = f"{operation} was recorded with {change}: the host computed it, and a replay runs no Python{evidence.first}"
    return Finding("frozen-value", name, d.where, why, fix)


def _renamed(d: Difference, evidence: Evidence) -> Finding | None:
    """A name that stood for what the graph reads and stands for another part of the same memory now."""
    buffer = evidence.buffer(d.was)
    was, is_ = addresses(buffer, d.was), addresses(evidence.eager.tape.buffers[d.now.buffer], d.now)
    for path, place in evidence.before.places.items():
        now = evidence.now.places.get(path)
        if was != is_ and (place.start, place.end) == was and now is not None and (now.start, now.end) == is_:
            return of_moved(place, buffer, d.where, evidence, freed=False)
    return None


def _view_name(was: TensorRef, now: TensorRef, evidence: Evidence) -> str | None:
    """The name of the plain value that the host made another view from: a size, a place, or the number of a row."""
    pairs = [*zip(was.size, now.size, strict=False), (was.offset, now.offset)]
    for unit in {*was.stride, math.prod(was.size)} - {0, 1}:
        if was.offset % unit == now.offset % unit == 0:
            pairs.append((was.offset // unit, now.offset // unit))
    names = {of_values(evidence.before, evidence.now, a, b) for a, b in pairs if a != b} - {None}
    return names.pop() if len(names) == 1 else None


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


def _numbers(ref: object, recording: Recording) -> object:
    return recording.tape.tensor(ref).tolist() if isinstance(ref, TensorRef) else ref


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
