"""Pieces of Markdown that the pages written from measurements share."""

from __future__ import annotations


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def plain(text: str) -> str:
    """Text of an error, kept from being read as Markdown."""
    return "`" + text.replace("`", "'").replace("|", "/") + "`"


def code(names: list[str]) -> str:
    """Names as code, in a row."""
    return ", ".join(f"`{name}`" for name in names)
