"""A figure with knobs: HTML with a little JavaScript for a page, widgets for a running notebook, a picture for both.

A page has no kernel behind it, so its script has the numbers with it, computed in Python beforehand, and does no more
than look them up and do plain arithmetic. The words below the picture are the same in both, letter by letter: a test
turns the knobs in a browser and compares. Where no script runs, there is the picture of the first setting, and its
words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Literal

from onelaunch.viz.figure import Figure

FOLDER = Path(__file__).resolve().parent
STATIC = "ONELAUNCH_STATIC"  # set while a page is built: widgets would be dead in it

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Knob:
    """One input. kind: a choice from a menu, steps of a slider, or a text.

    options: what can be chosen; for a text, what is there at first. first: the option that is chosen at first. unit:
    written behind the slider's value. when: another knob and its value; with any other this knob does nothing and is
    hidden.
    """

    name: str
    label: str
    kind: Literal["choice", "steps", "text"]
    options: Sequence[Any]
    first: Any
    unit: str = ""
    when: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.first not in self.options:
            raise ValueError(f"{self.name} begins with {self.first!r}, which is none of {list(self.options)}")

    def html(self) -> str:
        """A label with the input in it. Its name, and for a slider the stops, are what the script reads."""
        name, value = f'name="{escape(self.name)}"', ""
        if self.kind == "choice":
            options = "".join(
                f"<option{' selected' if option == self.first else ''}>{escape(str(option))}</option>"
                for option in self.options
            )
            control = f"<select {name}>{options}</select>"
        elif self.kind == "steps":
            at = list(self.options).index(self.first)
            shown = f"{self.first}{self.unit}"
            value = f"<b>{escape(shown)}</b>"
            control = (
                f'<input type="range" {name} min="0" max="{len(self.options) - 1}" step="1" value="{at}" '
                f'aria-valuetext="{escape(shown)}" data-unit="{escape(self.unit)}" '
                f'data-stops="{escape(json.dumps(list(self.options)))}">'
            )
        else:
            control = (
                f'<input type="text" {name} value="{escape(str(self.first))}" inputmode="numeric" spellcheck="false">'
            )
        when = f' data-when="{escape(json.dumps(self.when))}"' if self.when else ""
        return f"<label{when}><span>{escape(self.label)} {value}</span>{control}</label>"


class Explorer:
    """What all explorers share. One of them has a script beside this file, with its ``kind`` as its name.

    knobs: its inputs. data: what the script needs, as JSON.
    """

    kind: ClassVar[str]
    knobs: Sequence[Knob]
    data: Mapping[str, Any]

    def words(self, settings: Settings) -> str:
        """What one setting gives, in sentences."""
        raise NotImplementedError

    def figure(self, settings: Settings) -> Figure:
        """The picture of one setting."""
        raise NotImplementedError

    @property
    def first(self) -> dict[str, Any]:
        """The setting that is there at first."""
        return {knob.name: knob.first for knob in self.knobs}

    def __repr__(self) -> str:
        return f"Explorer: {self.words(self.first)}"

    def _repr_html_(self) -> str:
        script = f"(() => {{\n{_text('explorer.js')}\n{_text(f'{self.kind}.js')}\n}})();"
        data = json.dumps(self.data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        return (
            f'<div class="onelaunch-explorer" data-kind="{self.kind}"><style>{_text("explorer.css")}</style>'
            f"<form hidden>{''.join(knob.html() for knob in self.knobs)}</form>"
            f'<div class="picture">{self.figure(self.first).svg}</div>'
            f'<p class="said" role="status">{escape(self.words(self.first))}</p>'
            "<noscript><p>This is one setting of a figure with knobs. They need JavaScript.</p></noscript>"
            f'<script type="application/json">{data}</script><script>{script}</script></div>'
        )

    def widgets(self) -> Any:
        """The same knobs as ipywidgets, which draw with Python. Needs a running kernel, and ipywidgets.

        Raises ImportError, with what to install, where there is none.
        """
        try:
            import ipywidgets
        except ImportError:
            raise ImportError(
                "widgets() needs ipywidgets: pip install ipywidgets. Without it, let the cell end with the explorer "
                "itself, which works in a page and in a notebook."
            ) from None
        wide = {"style": {"description_width": "8em"}, "layout": {"width": "34em", "max_width": "100%"}}
        made: dict[str, Any] = {}
        for knob in self.knobs:
            if knob.kind == "text":
                made[knob.name] = ipywidgets.Text(value=knob.first, description=knob.label, **wide)
                continue
            options = [(f"{option}{knob.unit}", option) for option in knob.options]
            widget = ipywidgets.Dropdown if knob.kind == "choice" else ipywidgets.SelectionSlider
            made[knob.name] = widget(options=options, value=knob.first, description=knob.label, **wide)
        picture = ipywidgets.HTML()

        def show(_: object = None) -> None:
            settings = {name: widget.value for name, widget in made.items()}
            for knob in self.knobs:
                hidden = knob.when is not None and settings[knob.when[0]] != knob.when[1]
                made[knob.name].layout.display = "none" if hidden else None
            picture.value = (
                f'<div style="max-width:34em">{self.figure(settings).svg}<p>{escape(self.words(settings))}</p></div>'
            )

        for widget in made.values():
            widget.observe(show, names="value")
        show()
        return ipywidgets.VBox([*made.values(), picture])


def in_live_notebook() -> bool:
    """Whether widgets would live: a kernel runs, ipywidgets is installed, and no page is being built."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None and not os.environ.get(STATIC)


@cache
def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8").strip()
