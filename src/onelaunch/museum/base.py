"""What an exhibit is: a mechanism in a few lines, broken and mended, with the report that it comes from and the finding
that is expected. It runs on the emulator, on any machine."""

from __future__ import annotations

import inspect
import linecache
import textwrap
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from onelaunch import emulator
from onelaunch.tape import CaptureError

if TYPE_CHECKING:
    from onelaunch.sanitizer import Report

TOPICS = (
    "stale input",
    "moved or freed address",
    "output overwritten",
    "forbidden in capture",
    "frozen value or branch",
    "padding leaks",
    "shape outside of what was captured",
    "warm-up missing",
    "random numbers",
    "stream, thread or device",
    "allocator or garbage collector",
    "collectives",
    "silent eager",
    "LoRA",
    "memory",
)
DIGITS = 4


@dataclass(frozen=True)
class Case:
    """A step to be captured, and the host code before it: what ``onelaunch.sanitize`` takes.

    prepare: called with the number of the round before each step; 0 is before the capture. step: what is captured.
    owners: name -> what holds the tensors. padding: gives the views that hold padding in a round. read: what the caller
    makes of the step's output, such as the live rows of it; without it the output is taken as it is. check_liveness: let a
    replay raise where memory that it reads has no owner any more, as a GPU does where it is gone.
    """

    prepare: Callable[[int], Any]
    step: Callable[[], Any]
    owners: Mapping[str, Any] = field(default_factory=dict)
    padding: Callable[[int], Any] | None = None
    read: Callable[[Any], Any] | None = None
    check_liveness: bool = False
    rounds: int = 3

    def sanitize(self) -> Report:
        """What the sanitizer finds."""
        from onelaunch.sanitizer import sanitize

        return sanitize(
            self.prepare,
            self.step,
            rounds=self.rounds,
            owners=self.owners,
            padding=self.padding,
        )

    def eager(self) -> list[Any]:
        """What the caller sees after each round without a graph. Use a fresh case: this one has run then."""
        torch.manual_seed(0)
        self.prepare(0)
        self.step()
        seen = []
        for i in range(1, self.rounds + 1):
            self.prepare(i)
            seen.append(self._seen(self.step()))
        return seen

    def replayed(self) -> list[Any]:
        """The same from replays of one graph. Raises what the capture or a replay raises."""
        torch.manual_seed(0)
        self.prepare(0)
        self.step()
        graph = emulator.CUDAGraph()
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="The CUDA Graph is empty"
            )  # one exhibit is about that
            with emulator.graph(
                graph, check_input_liveness=self.check_liveness
            ):
                out = self.step()
        seen = []
        for i in range(1, self.rounds + 1):
            self.prepare(i)
            graph.replay()
            seen.append(self._seen(out))
        return seen

    def _seen(self, out: Any) -> Any:
        return plain(out if self.read is None else self.read(out))


@dataclass(frozen=True)
class Exhibit:
    """A public report and its mechanism in a few lines of our own.

    key: name of the module, with hyphens. topic: one of ``TOPICS``. reports: ``owner/repository#number`` each. seen: what
    people saw. mend: the way out, in a sentence. silent: whether nothing is raised on a GPU, as the reports tell.
    findings: kind and tensor of each finding that the sanitizer must give for ``broken``; for ``mended`` there is none.
    """

    key: str
    title: str
    topic: str
    reports: tuple[str, ...]
    seen: str
    mend: str
    silent: bool
    findings: tuple[tuple[str, str | None], ...]
    broken: Callable[[], Case]
    mended: Callable[[], Case]

    @property
    def code(self) -> str:
        """The mechanism: what stands between the imports of its module and its description."""
        lines = inspect.getsource(inspect.getmodule(self.broken)).splitlines()  # type: ignore[arg-type]  # it has one
        imports = [
            n
            for n, line in enumerate(lines)
            if line.startswith(("import ", "from "))
        ]
        end = next(
            n for n, line in enumerate(lines) if line.startswith("EXHIBIT =")
        )
        return "\n".join(lines[imports[-1] + 1 : end]).strip("\n")

    @property
    def links(self) -> dict[str, str]:
        """Each report's address."""
        return {
            report: "https://github.com/{}/issues/{}".format(
                *report.split("#", maxsplit=1)
            )
            for report in self.reports
        }

    def compare(
        self,
        broken: Callable[[], Case] | None = None,
        mended: Callable[[], Case] | None = None,
    ) -> None:
        """Print the right values beside those of a graph, and what the sanitizer finds in each.

        broken, mended: functions to use in place of the exhibit's own, such as those of an edited copy of its code.
        """
        broken, mended = broken or self.broken, mended or self.mended
        _say("right:", _values(mended(), "eager"))
        _say("graph:", _values(broken(), "replayed"))
        for name, make in (("broken", broken), ("mended", mended)):
            report = make().sanitize()
            if not report.findings:
                print(f"{name}: nothing found")
            for finding in report.findings:
                print(
                    f"{name}: {finding.kind}"
                    + (f" of {finding.tensor}" if finding.tensor else "")
                )
                line = linecache.getline(
                    finding.where.file, finding.where.line
                ).strip()
                _say("  line:", line)
                _say("  fix:", finding.fix)

    def show(self) -> None:
        """Print everything: the report, the code, the values, the findings and the mend."""
        print(
            self.title,
            f"({self.topic}; {'silent' if self.silent else 'loud'} on a GPU)",
            *self.reports,
            sep="\n",
        )
        print(
            "\n"
            + textwrap.fill(self.seen, 100)
            + "\n\n"
            + textwrap.indent(self.code, "    ")
            + "\n"
        )
        self.compare()
        print("\n" + textwrap.fill(f"The mend: {self.mend}", 100))


def plain(value: Any) -> Any:
    """``value`` with every tensor in it as plain numbers, floats rounded."""

    def numbers(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return numbers(leaf.detach().tolist())
        if isinstance(leaf, list):
            return [numbers(item) for item in leaf]
        return round(leaf, DIGITS) if isinstance(leaf, float) else leaf

    return pytree.tree_map(numbers, value)


def _values(case: Case, way: str) -> str:
    """What the caller of ``case`` sees, round by round, or the error, in CUDA's words where it has some."""
    try:
        return "; ".join(str(value) for value in getattr(case, way)())
    except CaptureError as error:
        return "error, " + (
            error.cuda_error or f"the emulator refuses {error.call}"
        )
    except RuntimeError as error:
        return "error, " + str(error).split(".")[0]


def _say(name: str, text: str) -> None:
    print(
        textwrap.fill(
            f"{name} {text}",
            76,
            subsequent_indent="    ",
            break_long_words=False,
        )
    )
