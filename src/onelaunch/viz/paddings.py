"""Padding: which size each batch is run as, which sizes engines record, and what more graphs save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onelaunch.padding import CaptureList, padded_size, waste_of
from onelaunch.viz.canvas import BLUE, FOREGROUND, GREY, ORANGE, Canvas, join, plural, text_width
from onelaunch.viz.figure import Figure


def padding_staircase(
    sizes: Sequence[int] | CaptureList,
    top: int,
    batch: int | None = None,
    counts: Mapping[int, int] | None = None,
) -> Figure:
    """The size that every batch up to ``top`` is run as. What lies between the stairs and the diagonal is padding.

    sizes: the recorded ones, ascending, or an engine's list. batch: one to point out. counts: batch size -> decode
    steps that had it, drawn below. Batches without a graph have a thick line under them.
    """
    made = sizes if isinstance(sizes, CaptureList) else CaptureList("", tuple(sizes))
    if not made.sizes or top < 1 or (batch is not None and not 1 <= batch <= top):
        raise ValueError(f"there must be a recorded size, and a batch must lie in 1 to {top}; found {sizes=}, {batch=}")
    left, plot, below = 40.0, 200.0, 62.0 if counts else 0.0
    highest = max(top, padded_size(min(top, made.sizes[-1]), made.sizes) or 0)
    canvas = Canvas(height=plot + 34 + below)
    unit_x, unit_y = (canvas.width - left - 12) / top, (plot - 8) / highest

    def at(x: float, y: float) -> tuple[float, float]:
        return left + unit_x * x, plot - unit_y * y

    stairs: list[tuple[float, float]] = []
    diagonal: list[tuple[float, float]] = []
    for size in range(1, top + 1):
        run_as = _rows(made, size) or size  # what runs eagerly wastes nothing
        stairs += [at(size - 1, run_as), at(size, run_as)]
        diagonal += [at(size - 1, size), at(size, size)]
    canvas.area([*stairs, *diagonal[::-1]], ORANGE, fill=0.35)
    canvas.line([at(0, 0), *diagonal], GREY)
    canvas.line([at(0, 0), *stairs], FOREGROUND, width=1.1)
    canvas.line([at(0, highest), at(0, 0), at(top, 0)], GREY)
    for first, last in _without_graph(made, top):
        canvas.line([at(first - 1, 0), at(last, 0)], BLUE, width=3)
        if unit_x * (last - first + 1) > text_width("no graph") + 8:
            canvas.text(at((first - 1 + last) / 2, 0)[0], plot - 10, "no graph", "center", faint=True)
    for tick in _ticks(top):
        canvas.text(at(tick, 0)[0], plot + 12, str(tick), "center", faint=True)
    for tick in _ticks(highest):
        canvas.text(left - 5, at(0, tick)[1], str(tick), "right", faint=True)
    canvas.text(left + 5, 8, "run as", faint=True)
    canvas.text(canvas.width, plot + 27, "requests in the batch", "right", faint=True)
    padded = None if batch is None else _rows(made, batch)
    if batch is not None and padded is not None:
        x = at(batch - 0.5, 0)[0]
        canvas.line([(x, at(0, batch)[1]), (x, at(0, padded)[1])], BLUE, width=2.2)
        label = f"{batch} run as {padded}"
        canvas.text(
            x - 6 if x - 6 - text_width(label) > left else x + 8, at(0, padded)[1] - 9, label, "right", bold=True
        )
    elif batch is not None:
        canvas.line([at(batch - 0.5, 0), at(batch - 0.5, batch)], BLUE, width=2.2, dashed=True)
    if counts:
        _histogram(canvas, counts, top, left, unit_x, plot + 34, below)
    return Figure(canvas.drawing, *_staircase_words(made, top, batch, counts))


def _rows(made: CaptureList, size: int) -> int | None:
    """The rows that a batch is replayed with, or None."""
    run_as = made.run_as(size)
    return None if isinstance(run_as, str) else run_as


def _without_graph(made: CaptureList, top: int) -> list[tuple[int, int]]:
    """The first and the last of each run of batches that find no graph."""
    runs: list[tuple[int, int]] = []
    for size in range(1, top + 1):
        if _rows(made, size) is None:
            joined = runs and runs[-1][1] == size - 1
            runs[-1:] = [(runs[-1][0], size)] if joined else [*runs[-1:], (size, size)]
    return runs


def _histogram(
    canvas: Canvas, counts: Mapping[int, int], top: int, left: float, unit: float, y: float, height: float
) -> None:
    most = max(counts.values())
    base, scale = y + height - 4, (height - 22) / most
    canvas.text(left + 5, y + 8, "how often", faint=True)
    for size, steps in counts.items():
        if 1 <= size <= top and steps:
            canvas.area(
                [
                    (left + unit * (size - 1), base),
                    (left + unit * (size - 1), base - scale * steps),
                    (left + unit * size, base - scale * steps),
                    (left + unit * size, base),
                ],
                GREY,
                fill=0.7,
            )
    canvas.line([(left, base), (left + unit * top, base)], GREY)


def capture_lists(lists: Mapping[str, Sequence[int]], top: int) -> Figure:
    """One ruler for each list of sizes, up to ``top``: where its marks are close, little is padded."""
    if not lists or top < 1:
        raise ValueError(f"there must be a list, and a top of at least 1; found {list(lists)}, {top=}")
    row, heading, width_of_count = 38.0, 16.0, text_width("1000") + 6
    canvas = Canvas(height=row * len(lists) + 18)
    unit = (canvas.width - width_of_count) / top
    for number_of_row, (name, sizes) in enumerate(lists.items()):
        y = row * number_of_row
        canvas.text(0, y + 8, name)
        canvas.text(canvas.width, y + heading + 7, str(len(sizes)), "right", bold=True)
        canvas.line([(0, y + heading + 14), (unit * top, y + heading + 14)], GREY)
        for size in sizes:
            if size <= top:
                canvas.line([(unit * size, y + heading + 2), (unit * size, y + heading + 14)], BLUE, width=1.1)
    for tick in _ticks(top):
        canvas.text(unit * tick, row * len(lists) + 8, str(tick), "center" if tick else "left", faint=True)
    said = [
        f"{name} has {plural(len(sizes), 'graph')}, {_spoken(sizes)}" if sizes else f"{name} has none"
        for name, sizes in lists.items()
    ]
    alt = f"Rulers with a mark for each recorded batch size up to {top}: {'; '.join(said)}."
    return Figure(
        canvas.drawing,
        alt,
        "A mark for each recorded size; a batch moves right to the next one. The number is how many graphs that is.",
    )


def waste_against_graphs(best: Mapping[int, float], lists: Mapping[str, tuple[int, float]]) -> Figure:
    """How much padding a number of graphs costs: the least there can be as a curve, lists as numbered points.

    best: number of graphs -> dummy rows for each live row. lists: name -> its number of graphs and its dummy rows for
    each live row.
    """
    if not best or not lists:
        raise ValueError("there is nothing to draw: best and lists need an entry each")
    left, plot, line = 44.0, 190.0, 18.0
    canvas = Canvas(height=plot + 36 + line * len(lists))
    graphs = max([*best, *(count for count, _ in lists.values())])
    share = 1.4 * max(value for _, value in lists.values())  # very few graphs waste many times that
    unit_x, unit_y = (canvas.width - left - 16) / graphs, (plot - 16) / max(share, 1e-9)

    def at(x: float, y: float) -> tuple[float, float]:
        return left + unit_x * x, plot - unit_y * y

    canvas.line([(left, 4), at(0, 0), at(graphs, 0)], GREY)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 1e9) if share / s <= 5)
    for tick in range(int(share / step) + 1):
        canvas.text(left - 5, at(0, tick * step)[1], f"{tick * step:.0%}", "right", faint=True)
    for tick in _ticks(graphs):
        canvas.text(at(tick, 0)[0], plot + 12, str(tick), "center", faint=True)
    canvas.text(canvas.width, plot + 27, "graphs", "right", faint=True)
    canvas.text(left + 5, 8, "dummy rows for each live row", faint=True)
    canvas.line([at(count, best[count]) for count in sorted(best) if best[count] <= share], BLUE, width=1.6)
    order = sorted(lists, key=lambda name: lists[name])
    for index, (name, (count, value)) in enumerate(lists.items(), 1):
        x, y = at(count, value)
        beside = -10 if order.index(name) % 2 else 10  # so that neighbours' numbers do not meet
        canvas.box(x - 3.5, y - 3.5, 7, 7, ORANGE, fill=1, edge=0, radius=3.5)
        canvas.text(x + beside, y - 8, str(index), "center", bold=True)
        under = plot + 36 + line * (index - 0.5)
        canvas.text(14, under, str(index), "right", bold=True)
        canvas.text(22, under, f"{name}: {plural(count, 'graph')}, {value:.1%}")
    said = [f"{name} {value:.1%} with {plural(count, 'graph')}" for name, (count, value) in lists.items()]
    curve = [f"{best[count]:.1%} with {count}" for count in sorted(best)][:: max(1, len(best) // 5)]
    return Figure(
        canvas.drawing,
        f"Padding against the number of graphs. The least there can be: {join(curve)}. Lists: {'; '.join(said)}.",
        "The curve is the least padding that so many graphs can have on this traffic. The points are lists of engines.",
    )


def _ticks(top: float) -> list[int]:
    step = next(s for s in (1, 2, 5, 10, 16, 32, 64, 128, 256, 512, 10**9) if top / s <= 8.5)
    return list(range(0, int(top) + 1, step))


def _spoken(sizes: Sequence[int]) -> str:
    shown = [str(size) for size in sizes]
    return join(shown) if len(shown) <= 12 else f"{', '.join(shown[:6])} and so on to {shown[-1]}"


def _staircase_words(
    made: CaptureList, top: int, batch: int | None, counts: Mapping[int, int] | None
) -> tuple[str, str]:
    """Alt text and caption."""
    alt = (
        f"A staircase over the batch sizes 1 to {top}: each is run as the next of {_spoken(made.sizes)}. The area "
        "between the stairs and the diagonal is padding."
    )
    caption = "Between the stairs and the diagonal lies what is computed for nobody."
    if batch is not None:
        padded = _rows(made, batch)
        if padded is None:
            then = "the engine raises an error" if made.run_as(batch) == "raises" else "run eagerly"
            caption = f"{plural(batch, 'request')} fit into no graph and {then}. {caption}"
        else:
            caption = (
                f"{plural(batch, 'request')} run as {padded}: {plural(padded - batch, 'row')} of padding, "
                f"{padded / batch - 1:.0%} on top. {caption}"
            )
    if counts:
        found = waste_of(counts, made)
        alt += f" Below, how often each batch size occurred, in {sum(counts.values()):,} steps."
        caption += f" For the traffic below that is {found.share:.1%} on top of what was asked for."
        if found.eager_steps:
            caption += f" Without a graph: {plural(found.eager_steps, 'step')}."
    return alt, caption
