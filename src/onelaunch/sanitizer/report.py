"""What the sanitizer found: data first, and the same in a terminal and in a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Literal, get_args

from onelaunch.tape.source import Source

Kind = Literal[
    "stale-input",
    "moved-address",
    "freed-address",
    "overwritten-output",
    "frozen-value",
    "frozen-branch",
    "padding-leak",
    "lazy-init-recorded",
    "host-sync",
    "host-data",
    "dynamic-shape",
    "unregistered-rng",
    "unjoined-stream",
    "pool-growth",
    "silent-eager",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with the step.

    tensor: what the owner calls the tensor or the value, None where it has no name. where: the line of your code.
    """

    kind: Kind
    tensor: str | None
    where: Source
    why: str
    fix: str

    def __str__(self) -> str:
        subject = f" {self.tensor}" if self.tensor else ""
        return f"{self.kind}{subject} at {self.where}\n{_indented('why', self.why)}\n{_indented('fix', self.fix)}"

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values; ``where`` is a dict of file, line and function."""
        return {**asdict(self), "where": self.where._asdict()}


@dataclass(frozen=True)
class Report:
    """The findings of one run of ``sanitize``. It has their length, so an empty one is false.

    rounds: replays that were compared with eager. kernels: how many the graph has.
    """

    findings: list[Finding] = field(default_factory=list)
    rounds: int = 0
    kernels: int = 0

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def kinds(self) -> list[Kind]:
        """The kind of each finding."""
        return [finding.kind for finding in self.findings]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "findings": [finding.as_dict() for finding in self.findings],
            "rounds": self.rounds,
            "kernels": self.kernels,
        }

    def __str__(self) -> str:
        return "\n".join([self._title(), *(str(finding) for finding in self.findings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(_row(finding) for finding in self.findings)
        # Colours with an alpha only, so that both the light and the dark page show through.
        return (
            '<div style="font-family: system-ui, sans-serif; line-height: 1.45">'
            f"<p><strong>{escape(self._title())}</strong></p>{rows}</div>"
        )

    def _title(self) -> str:
        n = len(self.findings)
        found = "nothing found" if n == 0 else counted(n, "finding")
        compared = f"{counted(self.rounds, 'replay')} of {counted(self.kernels, 'kernel')} beside eager"
        return f"{found}; {compared}" if self.rounds else f"{found}; no replay was compared"


def counted(number: int, what: str) -> str:
    """ "1 kernel", "2 kernels"."""
    return f"{number} {what}{'s' * (number != 1)}"


class FindingsError(RuntimeError):
    """A replay is not what eager computes. report: what was found."""

    def __init__(self, what: str, report: Report) -> None:
        super().__init__(f"{what}: {report}")
        self.report = report


def _indented(name: str, text: str) -> str:
    return textwrap.fill(text, width=100, initial_indent=f"  {name}: ", subsequent_indent="       ")


def _row(finding: Finding) -> str:
    subject = f" <code>{escape(finding.tensor)}</code>" if finding.tensor else ""
    return (
        '<div style="border-left: 4px solid rgb(214 90 49); background: rgb(128 128 128 / 10%); '
        'padding: .5em .8em; margin: .5em 0; overflow-wrap: anywhere">'
        f"<strong>{finding.kind}</strong>{subject} "
        f'<span style="opacity: .75">{escape(str(finding.where))}</span>'
        f"<div>{escape(finding.why)}</div><div><em>Fix:</em> {escape(finding.fix)}</div></div>"
    )
