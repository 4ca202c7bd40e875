"""Which sizes are recorded, and which of them a batch is run as."""

from __future__ import annotations

import pytest

from onelaunch.padding import capture_sizes, default_ceiling, padded_size


@pytest.mark.parametrize(
    ("ceiling", "sizes"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 2, 3]),
        (4, [1, 2, 4]),
        (8, [1, 2, 4, 8]),
        (20, [1, 2, 4, 8, 16, 20]),
        (32, [1, 2, 4, 8, 16, 24, 32]),
    ],
)
def test_one_two_four_then_every_eighth_and_the_ceiling(ceiling: int, sizes: list[int]) -> None:
    assert capture_sizes(ceiling) == sizes


def test_the_usual_ceilings() -> None:
    assert default_ceiling(141 << 30) == 256
    assert default_ceiling(80 << 30) == 160
    assert capture_sizes(160)[-2:] == [152, 160]


@pytest.mark.parametrize(("size", "padded"), [(1, 1), (3, 4), (5, 8), (17, 20), (20, 20), (21, None)])
def test_a_batch_is_run_as_the_smallest_size_that_holds_it(size: int, padded: int | None) -> None:
    assert padded_size(size, capture_sizes(20)) == padded
