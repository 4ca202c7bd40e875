"""Writes a tape in Graphviz's DOT language, to be drawn by ``dot -Tsvg``."""

from __future__ import annotations

from onelaunch.tape.tape import Tape


def to_dot(tape: Tape) -> str:
    """One box for each kernel, with its line of your code; an edge from each kernel to those that must come after it.

    The kernels of one stream have one border colour.
    """
    streams = {number: place for place, number in enumerate(dict.fromkeys(k.stream for k in tape.kernels))}
    lines = [
        "digraph tape {",
        "  node [shape=box, fontname=monospace, fontsize=10, colorscheme=dark28];",
    ]
    for kernel in tape.kernels:
        label = f"{kernel.index} {kernel.name}\n{kernel.where}"
        lines.append(f"  k{kernel.index} [label={_quoted(label)}, color={streams[kernel.stream] % 8 + 1}];")
    for index, before in enumerate(tape.dag()):
        lines += [f"  k{other} -> k{index};" for other in before]
    lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
