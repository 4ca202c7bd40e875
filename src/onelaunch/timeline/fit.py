"""What repeated timings say: a time, a line through times, and how sure one can be of either.

Each round times every subject once. A time is the median over the rounds, so that an interrupted call does not count.
Its interval comes from a bootstrap: the rounds are drawn again with replacement, many times, and the interval holds the
middle 95% of what comes out (the percentile method: Efron and Tibshirani, "An Introduction to the Bootstrap", chapter
13). Whole rounds are drawn, so what slowed all subjects of one round stays together. The interval covers chance alone:
where the times do not lie on a line, ``Line.misfit`` says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS, CONFIDENCE = 1000, 0.95
MIN_ROUNDS = 10  # fewer rounds give a bootstrap too little to draw from


@dataclass(frozen=True)
class Estimate:
    """A time in microseconds and its 95% interval."""

    us: float
    low_us: float
    high_us: float

    def times(self, factor: float) -> Estimate:
        """The time of ``factor`` of them."""
        return Estimate(factor * self.us, factor * self.low_us, factor * self.high_us)

    def __str__(self) -> str:
        return f"{digits(self.us)} µs ({digits(self.low_us)} to {digits(self.high_us)})"


@dataclass(frozen=True)
class Line:
    """``start + each * x`` microseconds. unit: what x counts, such as "element".

    points: what the line was laid through, as (x, microseconds). misfit: the largest distance between a point and the
    line, as a share of the point.
    """

    unit: str
    start: Estimate
    each: Estimate
    points: tuple[tuple[float, float], ...]
    misfit: float

    def at(self, x: float) -> float:
        """Microseconds at ``x``."""
        return self.start.us + self.each.us * x


def resampled_medians(rounds: ArrayLike, draws: int = DRAWS, seed: int = 0) -> NDArray[np.float64]:
    """The median of each column, [1 + draws, subjects]: of the rounds as they are, then of ``draws`` resamples.

    rounds: [rounds, subjects], in microseconds. Raises ValueError for fewer than ``MIN_ROUNDS`` rounds, or for a time
    that is not above zero.
    """
    table = np.asarray(rounds, dtype=np.float64)
    if table.ndim != 2 or len(table) < MIN_ROUNDS:
        raise ValueError(f"at least {MIN_ROUNDS} rounds are needed, as [rounds, subjects]; found {list(table.shape)}")
    if not (np.isfinite(table).all() and (table > 0).all()):
        raise ValueError("every time must be above zero; found one that is not, so the clock is too coarse for it")
    random = np.random.default_rng(seed)
    medians = [np.median(table, axis=0)[None]]
    chunk = max(1, 500_000 // table.size)
    for first in range(0, draws, chunk):
        chosen = random.integers(len(table), size=(min(chunk, draws - first), len(table)))
        medians.append(np.median(table[chosen], axis=1))
    return np.concatenate(medians)


def estimate(values: NDArray[np.float64]) -> Estimate:
    """The first of ``values``, and the middle 95% of the others. values: [1 + draws], from ``resampled_medians``."""
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(values[1:], [tail, 100 - tail])
    return Estimate(float(values[0]), float(low), float(high))


def least_squares(x: Sequence[float], medians: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Start and slope of the line through each row of ``medians``, [1 + draws] each. medians: [1 + draws, len(x)].

    Each time is weighted by 1/time², so that one per cent counts alike everywhere: timings are off by a share of
    themselves, and the shortest know best where the line starts. Raises ValueError for fewer than three different x.
    """
    if len(set(x)) < 3 or medians.shape[1] != len(x):
        raise ValueError(f"a line needs three or more places and a time for each; found {list(x)} and {medians.shape}")
    at = np.asarray(x, dtype=np.float64)
    weight = medians[0] ** -2.0
    weight /= weight.sum()
    middle, mean = weight @ at, medians @ weight
    each = (medians - mean[:, None]) @ (weight * (at - middle)) / (weight @ (at - middle) ** 2)
    return mean - each * middle, each


def fit_line(x: Sequence[float], medians: NDArray[np.float64], unit: str) -> Line:
    """The line through ``medians`` ([1 + draws, len(x)]); see ``least_squares``. unit: what ``x`` counts."""
    start, each = least_squares(x, medians)
    points = tuple((float(place), float(us)) for place, us in zip(x, medians[0], strict=True))
    misfit = max(abs(start[0] + each[0] * place - us) / us for place, us in points)
    return Line(unit, estimate(start), estimate(each), points, float(misfit))


def digits(value: float) -> str:
    """Three digits, more before the point: 0.000213, 1.42, 12.3, 1,230."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if value == 0 or not np.isfinite(value):
        return f"{value:.0f}"
    decimals = 2 - int(np.floor(np.log10(abs(value))))
    return f"{value:.{max(decimals, 0)}f}"
