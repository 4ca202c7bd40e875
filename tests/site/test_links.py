"""Every link inside the site leads somewhere, and no page names another host but in a link to click."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from project import ROOT


class Page(HTMLParser):
    """The ids and links of one HTML file, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name == "href" and tag == "a" and value is not None:
                self.links.append(value)
            elif name in ("src", "href", "data", "poster", "srcset") and tag != "a" and value:
                self.loads.append(value)


@cache
def read(path: Path) -> Page:
    return Page(path)


def test_every_link_inside_the_site_leads_somewhere(site, page_name):
    page = read(site / page_name)
    broken = []
    for link in [*page.links, *page.loads]:
        url = urlsplit(link)
        if url.scheme or url.netloc:
            continue
        target = site / posixpath.normpath(posixpath.join(posixpath.dirname(page_name), unquote(url.path) or "."))
        target = site / page_name if not url.path else target
        if not target.is_file():
            broken.append(f"{link}: no such file")
        elif url.fragment and target.suffix == ".html" and unquote(url.fragment) not in read(target).ids:
            broken.append(f"{link}: no such place on that page")
    assert broken == []
    assert len(page.links) > 5, "hardly any links were found"


def test_nothing_is_loaded_from_another_host(site, page_name):
    """What the browser test cannot see: hints to connect, and what is loaded only on a click."""
    page = read(site / page_name)
    assert [load for load in page.loads if re.match(r"(https?:)?//", load)] == []
    text = (site / page_name).read_text(encoding="utf-8")
    # An exercise's page names the host that has Python where the site carries none; it says so (test_exercises.py).
    text = re.sub(r'<script type="application/json" id="exercise">.*?</script>', "", text, flags=re.DOTALL)
    assert re.findall(r"unpkg\.com|jsdelivr|cdnjs|googleapis|google-analytics|require\.js", text) == []


def test_no_style_sheet_loads_from_another_host(site):
    pattern = r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+"
    loads = {path.name: re.findall(pattern, path.read_text(encoding="utf-8")) for path in site.rglob("*.css")}
    assert {name: found for name, found in loads.items() if found} == {}


def test_every_chapter_of_the_table_of_contents_is_a_page(site):
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    wanted = [yaml.safe_load(toc)["root"], *re.findall(r"^\s*- file: (\S+)", toc, flags=re.MULTILINE)]
    assert len(wanted) > 3
    assert [name for name in wanted if not (site / f"{name}.html").is_file()] == []


def test_the_root_leads_to_the_first_page(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    root = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["root"]
    assert f"url={root}.html" in text


def test_no_page_carries_widgets_that_would_be_dead_in_it(site, page_name):
    text = (site / page_name).read_text(encoding="utf-8")
    assert "vnd.jupyter.widget" not in text
