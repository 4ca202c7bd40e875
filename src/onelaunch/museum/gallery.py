"""The list of exhibits for a page: filtered by topic and by silent or loud, with a little JavaScript where there is some,
and a plain list where there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from onelaunch.museum.base import Exhibit

_STYLE = """
.museum { line-height: 1.45; }
.museum form { display: flex; flex-wrap: wrap; gap: .4em 1.2em; margin: 0 0 .8em; align-items: center; }
.museum form[hidden], .museum section[hidden], .museum li[hidden] { display: none; }
.museum select { font: inherit; color: inherit; background: transparent; border: 1px solid; border-radius: .3em;
  padding: .25em .4em; min-width: 0; }
.museum option { color: #1f252d; background: #ffffff; }
.museum label { display: flex; align-items: center; gap: .4em; max-width: 100%; white-space: nowrap; }
.museum p { margin: 1em 0 .2em; }
.museum ul { margin: 0; padding-left: 1.2em; }
.museum li { margin: .15em 0; overflow-wrap: anywhere; }
.museum small { font-size: .9em; }
"""
# The root is found by its position, so that the same output twice on a page works, and in Colab's frame as well.
_SCRIPT = """
(() => {
  const all = document.querySelectorAll(".museum"), root = all[all.length - 1];
  const form = root.querySelector("form"), count = root.querySelector("output");
  const show = () => {
    const topic = form.elements.topic.value, voice = form.elements.voice.value;
    let shown = 0;
    for (const section of root.querySelectorAll("section")) {
      let some = false;
      for (const item of section.querySelectorAll("li")) {
        const fits = (!topic || section.dataset.topic === topic) && (!voice || item.dataset.voice === voice);
        item.hidden = !fits;
        some = some || fits;
        shown += fits;
      }
      section.hidden = !some;
    }
    count.textContent = shown + " shown";
  };
  form.hidden = false;
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
"""


class Gallery:
    """Exhibits as a list: HTML in a notebook, text elsewhere. anchors: let the titles lead to their headings."""

    def __init__(
        self, exhibits: Sequence[Exhibit], anchors: bool = True
    ) -> None:
        if not exhibits:
            raise ValueError("a gallery needs exhibits; found none")
        self.exhibits, self.anchors = list(exhibits), anchors

    def __repr__(self) -> str:
        lines = []
        for topic, group in groupby(
            self.exhibits, key=lambda exhibit: exhibit.topic
        ):
            lines.append(topic)
            lines += [
                f"  {e.key}: {e.title} ({_voice(e)}, {', '.join(_kinds(e))})"
                for e in group
            ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        topics = list(dict.fromkeys(exhibit.topic for exhibit in self.exhibits))
        options = "".join(
            f"<option>{escape(topic)}</option>" for topic in topics
        )
        sections = "".join(
            f'<section data-topic="{escape(topic)}"><p><strong>{escape(topic)}</strong></p><ul>{"".join(map(self._item, group))}</ul>'
            "</section>"
            for topic, group in groupby(
                self.exhibits, key=lambda exhibit: exhibit.topic
            )
        )
        return (
            f'<div class="museum"><style>{_STYLE}</style><form hidden>'
            f'<label>Class <select name="topic"><option value="">all</option>{options}</select></label> '
            '<label>On a GPU <select name="voice"><option value="">all</option><option>silent</option>'
            "<option>loud</option></select></label> "
            f'<output aria-live="polite"></output></form>{sections}<script>{_SCRIPT}</script></div>'
        )

    def _item(self, exhibit: Exhibit) -> str:
        title = escape(exhibit.title)
        if self.anchors:
            title = f'<a href="#{anchor(exhibit.title)}">{title}</a>'
        kinds = ", ".join(f"<code>{kind}</code>" for kind in _kinds(exhibit))
        voice = _voice(exhibit)
        return f'<li data-voice="{voice}">{title} <small>{voice} · {kinds} · {escape(exhibit.reports[0])}</small></li>'


def anchor(title: str) -> str:
    """The id that the site gives a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _voice(exhibit: Exhibit) -> str:
    return "silent" if exhibit.silent else "loud"


def _kinds(exhibit: Exhibit) -> list[str]:
    return list(dict.fromkeys(kind for kind, _ in exhibit.findings))
