"""The paged KV cache: the page table, the pool of pages, and the way from a token to its slot."""

from __future__ import annotations

from collections.abc import Sequence

from onelaunch.viz.canvas import GREY, REQUESTS, Canvas, join, plural
from onelaunch.viz.figure import Figure


def page_table(
    table: Sequence[Sequence[int]],
    seq_lens: Sequence[int],
    page_size: int,
    num_pages: int,
    dummy_page: int,
    rows: Sequence[int] | None = None,
) -> Figure:
    """The rows of some requests in the page table, and below them the pool, each page filled as far as it holds tokens.
    A line leads from the last request's newest token to its slot.

    table: ``[rows][columns]`` page numbers; the last row is the dummy request's. seq_lens: cached tokens of each
    request, one or more. rows: the row of each request (default: 0, 1, ...). num_pages: how many pages of the pool are
    drawn, from page 0 on; the dummy page follows them.
    """
    rows = list(range(len(seq_lens))) if rows is None else list(rows)
    if not rows or len(rows) != len(seq_lens) or min(seq_lens) < 1:
        raise ValueError(f"each request needs a row and a length of 1 or more; found {rows=}, {seq_lens=}")
    pages = [list(table[row][: -(-length // page_size)]) for row, length in zip(rows, seq_lens, strict=True)]
    unseen = sorted({page for owned in pages for page in owned if page >= num_pages})
    if unseen:
        raise ValueError(f"pages {unseen} are in use and would not be drawn with num_pages={num_pages}: draw more")
    table_y, row_height = 22.0, 23.0
    pool_y = table_y + row_height * (len(rows) + 1) + 52
    canvas = Canvas(height=pool_y + 56)
    start = _draw_table(canvas, table, rows, pages, table_y, row_height)
    page_x, page_width = _draw_pool(canvas, pages, seq_lens, page_size, num_pages, dummy_page, pool_y)

    newest = seq_lens[-1] - 1
    slot_x = page_x[pages[-1][-1]] + page_width * (newest % page_size + 0.5) / page_size
    canvas.curve(start, (start[0], start[1] + 34), (slot_x, pool_y - 34), (slot_x, pool_y - 1))
    canvas.arrow_head(slot_x, pool_y)
    return Figure(canvas.drawing, *_words(pages, seq_lens, page_size, dummy_page))


def _draw_table(
    canvas: Canvas,
    table: Sequence[Sequence[int]],
    rows: Sequence[int],
    pages: Sequence[Sequence[int]],
    top: float,
    height: float,
) -> tuple[float, float]:
    """Returns the point below the table from which the line to the last request's newest page goes on."""
    left, columns = 70.0, len(table[0])
    width = min(42.0, (canvas.width - left - 40) / columns)
    canvas.text(0, 8, "page table", bold=True)
    for column in range(columns):
        canvas.text(left + width * (column + 0.5), 8, str(column), "center", faint=True)
    canvas.text(left + width * columns + 8, 8, "column", faint=True)
    for number, row in enumerate([*rows, len(table) - 1]):
        is_request = number < len(rows)
        used = len(pages[number]) if is_request else 1
        color = REQUESTS[number % len(REQUESTS)] if is_request else GREY
        y = top + height * number
        canvas.text(0, y + height / 2, f"request {number}" if is_request else "dummy")
        for column, page in enumerate(table[row]):
            x, in_use = left + width * column, column < used
            canvas.box(x + 1, y + 1, width - 2, height - 2, color, fill=0.24 if in_use else 0, edge=1 if in_use else 0)
            canvas.text(x + width / 2, y + height / 2, str(page), "center", faint=not in_use)
    # The entry that the line starts from has a thicker edge. The line passes the dummy's row between two columns.
    x, y = left + width * (len(pages[-1]) - 1), top + height * (len(rows) - 1)
    canvas.box(x + 1, y + 1, width - 2, height - 2, REQUESTS[(len(rows) - 1) % len(REQUESTS)], fill=0, edge=2.2)
    below = top + height * (len(rows) + 1)
    canvas.line([(x + width, y + height - 3), (x + width, below)], width=0.9)
    return x + width, below


def _draw_pool(
    canvas: Canvas,
    pages: Sequence[Sequence[int]],
    seq_lens: Sequence[int],
    page_size: int,
    num_pages: int,
    dummy_page: int,
    top: float,
) -> tuple[dict[int, float], float]:
    """Returns the left edge of every page that is drawn, and the width of a page."""
    height, gap = 34.0, 18.0
    width = (canvas.width - gap) / (num_pages + 1)
    edges = {page: width * page for page in range(num_pages)} | {dummy_page: width * num_pages + gap}
    canvas.text(0, top - 12, "KV cache", bold=True)
    # Tokens in each page that is held, and the colour of who holds it.
    held = {dummy_page: (1, GREY)}
    for number, (owned, length) in enumerate(zip(pages, seq_lens, strict=True)):
        for column, page in enumerate(owned):
            held[page] = min(length - column * page_size, page_size), REQUESTS[number % len(REQUESTS)]
    for page, x in edges.items():
        tokens, color = held.get(page, (0, GREY))
        canvas.box(x + 1, top, width - 2, height, color, fill=0.07, edge=1 if tokens else 0.7, dashed=not tokens)
        if tokens:
            canvas.box(x + 1, top, (width - 2) * tokens / page_size, height, color, fill=0.30, edge=0)
        canvas.text(x + width / 2, top + height / 2, str(page), "center", faint=not tokens)
    canvas.text(0, top + height + 13, f"pages of {plural(page_size, 'token')}", faint=True)
    canvas.text(canvas.width, top + height + 13, "dummy's page", "right", faint=True)
    return edges, width


def _words(pages: Sequence[Sequence[int]], seq_lens: Sequence[int], page_size: int, dummy_page: int) -> tuple[str, str]:
    """Alt text and caption."""
    owners = [
        f"request {number} has {plural(length, 'token')} in {'page' if len(owned) == 1 else 'pages'} {join(owned)}"
        for number, (owned, length) in enumerate(zip(pages, seq_lens, strict=True))
    ]
    alt = (
        f"A page table above a pool of pages of {plural(page_size, 'token')}: {'; '.join(owners)}. The other entries "
        f"of the table name page {dummy_page}, which belongs to the dummy request."
    )
    newest, column = seq_lens[-1] - 1, len(pages[-1]) - 1
    caption = (
        f"The line follows the newest token of request {len(pages) - 1}, its token {newest}. Column {newest} // "
        f"{page_size} = {column} of its row says page {pages[-1][-1]}, and there it lies at offset {newest} % "
        f"{page_size} = {newest % page_size}. Entries not in use name the dummy's page, {dummy_page}."
    )
    return alt, caption
