"""Writes the gallery of chapter 11 from the exhibits of `onelaunch.museum`; the rest of the chapter is written by hand.

python book/scripts/museum_chapter.py            writes what stands between the two marks
python book/scripts/museum_chapter.py --check    exit code 1 if that would change something
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from itertools import groupby

from onelaunch import museum
from project import ROOT

CHAPTER = ROOT / "notebooks" / "11_the_museum.py"
# Cells of the chapter, which stay: what is between them is made here.
BEGIN, END = '# %% id="gallery"\n', '# %% [markdown] id="not-shown"\n'
WIDTH = 100


def main() -> int:
    """Write or check the chapter. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, say whether the chapter is up to date")
    args = parser.parse_args()
    found = CHAPTER.read_text(encoding="utf-8")
    wanted = with_gallery(found)
    if found == wanted:
        print(f"museum: {CHAPTER.name} shows the {len(museum.exhibits())} exhibits as they are")
        return 0
    if args.check:
        print(f"{CHAPTER.name} does not show the exhibits as they are: run `make museum`.", file=sys.stderr)
        return 1
    CHAPTER.write_text(wanted, encoding="utf-8")
    print(f"museum: wrote {len(museum.exhibits())} exhibits into {CHAPTER.name}")
    return 0


def with_gallery(chapter: str) -> str:
    """The chapter's source with the gallery between its marks. Raises ValueError where a mark is missing."""
    for mark in (BEGIN, END):
        if chapter.count(mark) != 1:
            raise ValueError(f"{CHAPTER.name} must have the line {mark.strip()!r} once; found {chapter.count(mark)}")
    head, rest = chapter.split(BEGIN)
    first, between, tail = rest.partition("\n\n")
    tail = rest[rest.index(END) :]
    return f"{head}{BEGIN}{first}{between}{gallery()}{tail}"


def gallery() -> str:
    """The cells of all exhibits, as py:percent."""
    cells = []
    for topic, group in groupby(museum.exhibits(), key=lambda exhibit: exhibit.topic):
        cells.append(markdown(f"### {topic[0].upper()}{topic[1:]}"))
        for exhibit in group:
            cells += [markdown(description(exhibit)), code(exhibit)]
    return "".join(cells)


def description(exhibit: museum.Exhibit) -> str:
    """What stands above an exhibit's code."""
    reports = ", ".join(f"[{report}]({address})" for report, address in exhibit.links.items())
    voice = "silent" if exhibit.silent else "loud"
    paragraphs = [
        f"#### {exhibit.title}",
        f"*{voice} on a GPU*, {reports}",
        fill(exhibit.seen),
        fill(f"**The mend.** {exhibit.mend}"),
    ]
    return "\n\n".join(paragraphs)


def code(exhibit: museum.Exhibit) -> str:
    """The cell that holds an exhibit's mechanism, and runs it."""
    header = f'# %% id="{exhibit.key}" tags=["nbval-check-output"]'
    call = f'museum.exhibit("{exhibit.key}").compare(broken, mended)'
    blank = "\n" if exhibit.code.startswith(("def ", "class ", "@")) else ""  # as ruff formats it
    return f"{blank}{header}\n{exhibit.code}\n\n\n{call}\n\n"


def markdown(text: str) -> str:
    """A Markdown cell."""
    return f'# %% [markdown]\n"""\n{text}\n"""\n\n'


def fill(text: str) -> str:
    """A paragraph, wrapped as the chapters are."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
