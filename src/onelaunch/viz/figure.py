"""A picture in a page: inline SVG that takes its text colour from the page and says in words what it shows.

An SVG that stands in the page, instead of an image file, inherits the page's colours, so the same output is readable on
a light page, on a dark one and in Colab. The price is that it shares one space of ids and styles with the page, and
whatever matplotlib puts into a file of its own has to be taken out first.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure as Drawing

# Stands for the page's text colour while matplotlib draws, which knows no such thing. No other colour may equal it.
FOREGROUND = "#010203"

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
# At this width a 10.5 pt label is about as large as the page's text; on a phone the figure is as wide as the column.
MAX_WIDTH = "34rem"

_prefixes: Counter[str] = Counter()


class Figure:
    """A matplotlib drawing for a notebook cell to end with.

    alt: what the figure shows, in words, for those who do not see it. Required: a figure without it is refused.
    caption: a sentence for everybody, shown below.
    """

    def __init__(self, drawing: Drawing, alt: str, caption: str | None = None) -> None:
        if len(alt.split()) < 3:
            raise ValueError(f"a figure needs alt text that says what it shows, in a sentence; found {alt!r}")
        self.alt, self.caption = alt, caption
        self.svg = _inline(_draw(drawing), alt)

    def __repr__(self) -> str:
        return f"Figure: {self.alt}"

    def _repr_html_(self) -> str:
        caption = ""
        if self.caption:
            caption = f'<figcaption style="margin-top:.5em;font-size:.9em">{html.escape(self.caption)}</figcaption>'
        return f'<figure class="onelaunch-figure" style="margin:0;max-width:{MAX_WIDTH}">{self.svg}{caption}</figure>'

    def save(self, path: str | Path) -> Path:
        """Write the SVG to ``path``. Its text is black where no page gives it a colour."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path


def _draw(drawing: Drawing) -> str:
    # Text stays text: it can be searched, read aloud and enlarged. The salt makes the same data give the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "onelaunch"}):
        file = io.StringIO()
        drawing.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return file.getvalue()


def _inline(svg: str, alt: str) -> str:
    """Make the contents of an SVG file fit to stand in a page among others."""
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    root = ET.fromstring(svg)
    _remove(root, f"{{{SVG}}}metadata")
    _remove(root, f"{{{SVG}}}style")  # matplotlib's rules for "*" would hold for the whole page
    for element in root.iter():
        if "style" in element.attrib:
            element.set("style", _style(element.get("style", "")))
    _rename_ids(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", alt)
    root.set("style", f"display:block;width:100%;height:auto;font-family:{FONTS};stroke-linejoin:round")
    return ET.tostring(root, encoding="unicode")


def _remove(root: ET.Element, tag: str) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == tag:
                parent.remove(child)


def _style(style: str) -> str:
    """One style attribute: the page's text colour for the foreground, the page's fonts for matplotlib's."""
    rules = []
    for rule in filter(None, (rule.strip() for rule in style.split(";"))):
        name, _, value = rule.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font":  # "italic 700 10.5px 'DejaVu Sans', ...": all but the families is kept
            style_and_weight, size = re.fullmatch(r"(.*?)([\d.]+px).*", value).groups()  # type: ignore[union-attr]
            rules.append(f"font-size:{size}")
            rules += [f"font-weight:{word}" for word in re.findall(r"\b(bold|[1-9]00)\b", style_and_weight)]
            rules += [f"font-style:{word}" for word in re.findall(r"\b(italic|oblique)\b", style_and_weight)]
        elif name != "font-family":
            rules.append(f"{name}:{value.replace(FOREGROUND, 'currentColor')}")
    return ";".join(rules)


def _rename_ids(root: ET.Element) -> None:
    """Keep the ids that something refers to (clip paths, markers), under names that no other figure of the page has."""
    text = ET.tostring(root, encoding="unicode")
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    base = hashlib.sha256(text.encode()).hexdigest()[:8]
    _prefixes[base] += bool(used)
    again = f"{_prefixes[base]}-" if _prefixes[base] > 1 else ""  # the same figure twice in one notebook
    new = {old: f"figure-{base}-{again}{number}" for number, old in enumerate(sorted(used))}
    for element in root.iter():
        if element.attrib.get("id") in new:
            element.set("id", new[element.attrib["id"]])
        else:
            element.attrib.pop("id", None)
        for name, value in element.attrib.items():
            if name.endswith("href") and value[1:] in new:
                element.set(name, "#" + new[value[1:]])
            elif "url(#" in value:
                element.set(name, re.sub(r"url\(#([^)]+)\)", lambda match: f"url(#{new[match[1]]})", value))
