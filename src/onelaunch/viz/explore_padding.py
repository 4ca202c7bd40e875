"""The padding explorer: choose a capture list and traffic, and see what each batch is run as and what that wastes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from onelaunch.padding import CaptureList, best_sizes, waste_of
from onelaunch.viz.canvas import plural
from onelaunch.viz.explorer import Explorer, Knob, Settings
from onelaunch.viz.figure import Figure
from onelaunch.viz.paddings import padding_staircase

BEST, OWN = "the best for this traffic", "your own"
HELP = "Your own list: batch sizes from 1 to 9999, such as 1 2 4 8 16."


class PaddingExplorer(Explorer):
    """Made by ``padding_explorer``."""

    kind = "explore_padding"

    def __init__(
        self,
        lists: Mapping[str, Sequence[int] | CaptureList],
        traffics: Mapping[str, Mapping[int, int]],
        batch: int,
        most_graphs: int,
    ) -> None:
        self.lists = {
            name: made if isinstance(made, CaptureList) else CaptureList(name, tuple(made))
            for name, made in lists.items()
        }
        self.traffics = {
            name: {size: steps for size, steps in sorted(counts.items()) if steps} for name, counts in traffics.items()
        }
        if not self.lists or not self.traffics or not all(self.traffics.values()):
            raise ValueError("an explorer needs a list and a traffic, and every traffic a step")
        if any(not made.sizes for made in self.lists.values()):
            raise ValueError("every list needs a size")
        self.top = max(batch, *(size for counts in self.traffics.values() for size in counts))
        budgets = range(1, most_graphs + 1)
        self.best = {
            name: {budget: best_sizes(counts, budget, self.top) for budget in budgets}
            for name, counts in self.traffics.items()
        }
        first = next(iter(self.lists))
        own = " ".join(map(str, self.lists[first].sizes))
        self.knobs = [
            Knob("list", "Sizes recorded", "choice", [*self.lists, BEST, OWN], first),
            Knob("graphs", "Number of graphs", "steps", budgets, min(13, most_graphs), when=("list", BEST)),
            Knob("own", "Sizes, with spaces between", "text", [own], own, when=("list", OWN)),
            Knob("traffic", "Traffic", "choice", list(self.traffics), next(iter(self.traffics))),
            Knob("batch", "Requests in the batch", "steps", range(1, self.top + 1), batch),
        ]
        self.data = {
            "lists": {
                name: {"sizes": made.sizes, "pads": made.pads, "fails_up_to": made.fails_up_to}
                for name, made in self.lists.items()
            },
            "traffics": {name: list(counts.items()) for name, counts in self.traffics.items()},
            "best": self.best,
            "best_name": BEST,
            "own_name": OWN,
            "own_help": HELP,
            "top": self.top,
            "alt": "A staircase: the size that each batch is run as, and below it how often each batch occurs.",
        }

    def chosen(self, settings: Settings) -> CaptureList:
        """The list of these settings. Raises ValueError, with what to write, for a list of one's own that is none."""
        name = settings["list"]
        if name == BEST:
            return CaptureList(name, tuple(self.best[settings["traffic"]][settings["graphs"]]))
        if name != OWN:
            return self.lists[name]
        found = [word for word in re.split(r"[\s,]+", settings["own"]) if word]
        wrong = [word for word in found if not re.fullmatch(r"[0-9]{1,4}", word) or int(word) == 0]
        if wrong or not found:
            raise ValueError(f'{HELP} Found "{wrong[0] if wrong else ""}".')
        return CaptureList(name, tuple(sorted(set(map(int, found)))))

    def words(self, settings: Settings) -> str:
        """What the batch is run as, and what the list wastes on the traffic."""
        try:
            made = self.chosen(settings)
        except ValueError as error:
            return str(error)
        counts, batch = self.traffics[settings["traffic"]], settings["batch"]
        run_as, found = made.run_as(batch), waste_of(counts, made)
        one = batch == 1
        if isinstance(run_as, str):
            said = f"{plural(batch, 'request')} find{'s' * one} no graph"
            said += ", and the engine raises an error." if run_as == "raises" else f" and run{'s' * one} eagerly."
        else:
            said = (
                f"{plural(batch, 'request')} run{'s' * one} as {run_as}: {plural(run_as - batch, 'row')} of padding, "
                f"{run_as / batch - 1:.0%} on top."
            )
        graphs = len(made.sizes)
        said += (
            f" On this traffic {plural(graphs, 'graph')} {'computes' if graphs == 1 else 'compute'} {found.share:.1%} "
            "more rows than were asked for"
        )
        if found.eager_steps:
            return f"{said}, and {found.eager_steps / sum(counts.values()):.1%} of the steps find no graph."
        return f"{said}, and every step finds a graph."

    def figure(self, settings: Settings) -> Figure:
        """The staircase of the list above the traffic; that of the first list where one's own is none."""
        try:
            made = self.chosen(settings)
        except ValueError:
            made = next(iter(self.lists.values()))
        return padding_staircase(made, self.top, settings["batch"], self.traffics[settings["traffic"]])


def padding_explorer(
    lists: Mapping[str, Sequence[int] | CaptureList],
    traffics: Mapping[str, Mapping[int, int]],
    batch: int = 37,
    most_graphs: int = 40,
) -> PaddingExplorer:
    """A staircase with knobs: the list, the traffic, the batch.

    lists: name -> recorded sizes, or an engine's list. traffics: name -> batch size -> how many decode steps had it.
    batch: the one to begin with. most_graphs: how many the best list for a traffic may have; it always holds the
    largest batch. A reader can also type a list. Raises ValueError where there is nothing to choose from.
    """
    return PaddingExplorer(lists, traffics, batch, most_graphs)
