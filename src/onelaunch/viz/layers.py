"""Where the nodes of a drawn graph stand: in layers from top to bottom, so that few lines cross."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Node = Hashable
Edge = tuple[Node, Node]
SWEEPS = 8


@dataclass
class Layout:
    """spots: layer and place across of each node, from 0 to 1. routes: the spots that each edge passes, both ends
    included; it has one in each layer, so that a long edge goes around the nodes between."""

    spots: dict[Node, tuple[int, float]]
    routes: dict[Edge, list[tuple[int, float]]]

    @property
    def layers(self) -> int:
        return 1 + max(layer for layer, _ in self.spots.values())


def arrange(nodes: Sequence[Node], edges: Sequence[Edge]) -> Layout:
    """Give each node a layer below all that lead to it, as low as those allow to which it leads.

    ``nodes`` come in an order in which edges lead forward.
    """
    layer = dict.fromkeys(nodes, 0)
    for node in nodes:
        for before, after in edges:
            if after == node:
                layer[node] = max(layer[node], layer[before] + 1)
    for node in reversed(nodes):
        below = [layer[after] for before, after in edges if before == node]
        if below:
            layer[node] = min(below) - 1
    passes: dict[Edge, list[Node]] = {}
    rows: list[list[Node]] = [[] for _ in range(1 + max(layer.values()))]
    for node in nodes:
        rows[layer[node]].append(node)
    neighbours: dict[Node, list[Node]] = {}
    for edge in edges:
        between: list[Node] = [(edge, number) for number in range(layer[edge[0]] + 1, layer[edge[1]])]
        passes[edge] = [edge[0], *between, edge[1]]
        for one, other in zip(passes[edge], passes[edge][1:], strict=False):
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
        for number, node in enumerate(between, start=layer[edge[0]] + 1):
            rows[number].append(node)
    across = _across(rows, neighbours)
    spots = {node: (number, across[node]) for number, row in enumerate(rows) for node in row}
    routes = {edge: [spots[node] for node in passed] for edge, passed in passes.items()}
    return Layout({node: spots[node] for node in nodes}, routes)


def _across(rows: list[list[Node]], neighbours: dict[Node, list[Node]]) -> dict[Node, float]:
    """Order each row by where its neighbours stand, again and again; then move each node as near to them as it goes."""
    across: dict[Node, float] = {}

    def wanted(node: Node) -> float:
        near = neighbours.get(node, [node])
        return sum(across[other] for other in near) / len(near)

    for row in rows:
        across.update({node: (at + 0.5) / len(row) for at, node in enumerate(row)})
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            row.sort(key=wanted)
            across.update({node: (at + 0.5) / len(row) for at, node in enumerate(row)})
    gap = 1 / max(len(row) for row in rows)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            across.update(zip(row, _apart([wanted(node) for node in row], gap), strict=True))
    return across


def _apart(places: list[float], gap: float) -> list[float]:
    """The places in their order, at least ``gap`` from each other and half of it from 0 and 1."""
    low, high = gap / 2, 1 - gap / 2
    for at, place in enumerate(places):
        places[at] = low = max(place, low)
        low += gap
    for at in reversed(range(len(places))):
        places[at] = high = min(places[at], high)
        high -= gap
    return places
