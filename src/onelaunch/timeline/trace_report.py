"""A trace in words: the report that ``onelaunch trace`` prints, in 80 columns, and the same as data."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from onelaunch.timeline.trace import CAUSES, Device, Gap, Stretch, Trace

WIDTH = 80
MEANING = {
    "busy": "something runs on the device",
    "launch": "idle: the next launch had not arrived yet",
    "sync": "idle: the same, and the host was synchronizing",
    "queue": "idle: the launch was there, and not begun yet",
    "graph": "idle between two kernels of one graph",
}
COLLECTIVE = re.compile(r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter", re.IGNORECASE)
# From this share of the active time on a device is called busy, or a wait the cause.
BUSY, BOUND = 0.90, 0.25


def verdict(stretch: Stretch, attributed: bool = True) -> str:
    """One sentence: launch-bound or not, and by how much, without what synchronizations and long waits took."""
    active = stretch.active_us
    if active <= 0:
        return "Nothing ran."
    busy, launch = stretch.busy_us / active, stretch.launch_us / active
    left = "" if active > BUSY * stretch.span_us else f" of the {ms(active)} that remain without long waits"
    if busy >= BUSY:
        return f"Not launch-bound: the device is busy for {percent(busy)}{left or ' of the time'}."
    if not attributed:
        return f"The device is idle for {percent(1 - busy)} of the time; the trace has no launches that would say why."
    if launch >= BOUND:
        waits = "the device waits for the next launch"
        return f"Launch-bound: {waits} for {percent(launch)}{left or ' of the time'}."
    return (
        f"Not launch-bound: the device is busy for {percent(busy)}{left or ' of the time'}, and waits for a launch for "
        f"{percent(launch)}."
    )


def as_text(trace: Trace) -> str:
    """The report."""
    lines = [*_wrap(str(trace.path))]
    rank = trace.profile.rank
    if rank is not None and (trace.profile.world_size or 1) > 1:
        lines.append(f"rank {rank} of {trace.profile.world_size}")
    for number, device in enumerate(trace.devices):
        lines += ["", *_device(device)] if number == 0 or device.whole.kernels else ["", *_short_device(device)]
    lines += ["", *_host(trace)]
    return "\n".join(lines)


def _device(device: Device) -> list[str]:
    whole = device.whole
    about = [f"GPU {device.number}", device.hardware, plural(device.streams, "stream")]
    work = [plural(whole.kernels, "kernel"), plural(whole.copies, "copy or memset", "copies and memsets")]
    work += [plural(whole.graph_launches, "graph launch", "graph launches")] if whole.graph_launches else []
    lines = [", ".join(filter(None, about)), ", ".join(work), ""]
    lines += [*_wrap(verdict(whole, device.attributed)), "", *_parts(whole)]
    steps = device.steps
    if steps is not None and (len(steps.all) > 1 or steps.median.span_us < 0.99 * whole.span_us):
        word = "step" if steps.are_steps else "repetition"
        found = f"{plural(len(steps.all), word)}, by {steps.source}."
        found += "" if steps.are_steps else " These may be layers: the host reads nothing back between them."
        lines += ["", *_wrap(found + (" The one of median time:" if len(steps.all) > 1 else "")), ""]
        lines += [*_wrap(verdict(steps.median, device.attributed)), "", *_parts(steps.median)]
        lines += ["", *_wrap(saving(steps.median, f"a {word}"))]
    else:
        lines += ["", *_wrap(saving(whole, "the profile"))]
    return [*lines, "", *_gaps(device), "", *_slowest(device)]


def _short_device(device: Device) -> list[str]:
    return [f"GPU {device.number}: no kernels, {plural(device.whole.copies, 'copy', 'copies')}."]


def _parts(stretch: Stretch) -> list[str]:
    lines = [f"{'time':8}{ms(stretch.span_us):>12}"]
    for part in ("busy", *CAUSES):
        value = float(getattr(stretch, f"{part}_us"))
        lines.append(f"  {part:6}{ms(value):>12}{percent(stretch.share(part)):>8}  {MEANING[part]}")
    if stretch.long_queue_us > 0.1 * stretch.span_us:
        lines += _wrap(
            f"{ms(stretch.long_queue_us)} of the queue's time was work that had long been launched: it waited for "
            "something else, perhaps for work that the profile does not show. Without that and sync, "
            f"{ms(stretch.active_us)} are left, and the device is busy for "
            f"{percent(stretch.busy_us / stretch.active_us)} of them."
        )
    return lines


def saving(stretch: Stretch, of: str) -> str:
    """What a graph would save at most, and why not more."""
    text = f"A graph would save at most {ms(stretch.saving_us)} of {ms(stretch.active_us)}"
    text += f" ({percent(stretch.saving_us / stretch.active_us if stretch.active_us else 0)}) of {of}"
    text += ": its waits for launches" if stretch.graph_launches == 0 else ": the waits outside of its graph launches"
    text += ", if all of it can be captured. The kernels take the time they take."
    if stretch.sync_us > 0.01 * stretch.span_us:
        text += (
            f" {ms(stretch.sync_us)} more are waits in synchronizations, which a capture refuses: take those out first."
        )
    return text


def _gaps(device: Device) -> list[str]:
    if not device.largest:
        return ["The device never waited."]
    lines = ["Largest waits", f"{'at':>12}{'for':>12}  cause   before, and what the host was in"]
    for gap in device.largest[:6]:
        before = f"{ms(gap.start_us):>12}{ms(gap.end_us - gap.start_us):>12}  {gap.cause:6}  "
        lines.append(before + short(gap.next, WIDTH - len(before)))
        where = _where(gap, WIDTH - len(before))
        if where:
            lines.append(" " * len(before) + where)
    return lines


def _where(gap: Gap, room: int) -> str:
    """The innermost of what the host was in, and as much of what is around it as fits."""
    said = "between steps" if gap.between_steps and not gap.host else ""
    for name in reversed([short(each, room) for each in gap.host]):
        longer = f"{name} > {said}" if said else name
        if len(longer) > room:
            break
        said = longer
    return said


def _slowest(device: Device) -> list[str]:
    lines = [f"{'Kernels that take most':56}{'calls':>10}{'in all':>12}"]
    for name, calls, took in device.slowest:
        lines.append(f"{short(name, 55):56}{calls:>10,}{ms(took):>12}")
    if any(COLLECTIVE.search(name) for name, _, _ in device.slowest):
        lines += _wrap("A collective counts as busy while it waits for the other GPUs: compare the ranks' traces.")
    return lines


def _host(trace: Trace) -> list[str]:
    if not trace.launches and not trace.graph_launches:
        return _wrap("The trace has no launches: which of the waits are the host's cannot be said.")
    lines = [f"{'The host called':40}{'times':>10}{'median':>12}{'in all':>12}"]
    for each in [*trace.launches, *trace.graph_launches]:
        lines.append(f"{each.name:40}{each.calls:>10,}{ms(each.median_us):>12}{ms(each.total_us):>12}")
    arrival_us = trace.devices[0].gaps.arrival_us
    if arrival_us:
        lines.append(f"From the end of a call until an idle device begins: {ms(arrival_us)} (median).")
    return lines


def as_dict(trace: Trace) -> dict[str, Any]:
    """The report as data that JSON can hold; times in microseconds from the first activity of any device."""
    profile = trace.profile
    return {
        "file": str(trace.path),
        "rank": profile.rank,
        "world_size": profile.world_size,
        "launches": [vars(each) for each in trace.launches],
        "graph_launches": [vars(each) for each in trace.graph_launches],
        "devices": [
            {
                "device": device.number,
                "hardware": device.hardware,
                "streams": device.streams,
                "attributed": device.attributed,
                "arrival_us": device.gaps.arrival_us,
                "verdict": verdict(device.whole, device.attributed),
                "whole": _stretch(device.whole),
                "steps": device.steps
                and {
                    "source": device.steps.source,
                    "are_steps": device.steps.are_steps,
                    "count": len(device.steps.all),
                    "median": _stretch(device.steps.median),
                    "spans_us": [each.span_us for each in device.steps.all],
                },
                "largest_waits": [{**vars(gap), "cause": gap.cause} for gap in device.largest],
                "slowest_kernels": [
                    {"name": name, "calls": calls, "total_us": took} for name, calls, took in device.slowest
                ],
            }
            for device in trace.devices
        ],
    }


def _stretch(stretch: Stretch) -> dict[str, Any]:
    return {**vars(stretch), "span_us": stretch.span_us, "active_us": stretch.active_us}


def ms(value_us: float) -> str:
    """Microseconds for a reader: in µs below one millisecond, in ms below ten seconds."""
    if value_us < 1e3:
        return f"{value_us:.1f} µs" if value_us >= 0.05 else "0 µs"
    return f"{value_us / 1e3:,.2f} ms" if value_us < 1e7 else f"{value_us / 1e6:,.1f} s"


def percent(share: float) -> str:
    """0.079 as 7.9 %."""
    return f"{100 * share:.1f} %"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def short(name: str, room: int) -> str:
    """The name of a kernel or of a line of Python, without arguments, addresses, folders and PyTorch's namespaces."""
    if match := re.fullmatch(r"<built-in method (\w+) of .*>", name):
        name = f"built-in {match[1]}"
    elif match := re.fullmatch(r"(?:.*/)?([^/]+\.py\(\d+\): .+)", name):
        name = match[1]
    elif name.startswith("_Z"):
        name = "::".join(_mangled(name)) or name
    elif "(" in name or "<" in name:
        name = _without_arguments(name)
    return name if len(name) <= room else name[: room - 1] + "…"


def _mangled(name: str) -> list[str]:
    """``_ZN5aiter3addEv`` has the parts ``aiter`` and ``add``: each is its length, then itself."""
    parts, rest = [], re.sub(r"^_ZN?[KL]?", "", name)
    while match := re.match(r"(\d+)", rest):
        length = int(match[1])
        rest = rest[match.end() :]
        parts.append(rest[:length])
        rest = rest[length:]
    return [part for part in parts if not part.startswith("_GLOBAL__N_")]


def _without_arguments(name: str) -> str:
    name = re.sub(r"^void |\(anonymous namespace\)::|at::native::|\bstd::", "", name)
    depth = 0
    for place, character in enumerate(name):
        if character == "(" and depth == 0 and place > 0:
            return name[:place]
        depth += {"<": 1, ">": -1}.get(character, 0)
    return name


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)
