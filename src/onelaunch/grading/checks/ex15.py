"""Exercise 15, two ranks, one order: the same graphs, the same steps, and the communicator last."""

from __future__ import annotations

from typing import Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.ranks import Rank, World
from onelaunch.grading.trial import Trial, Wrong, show

exercise = Exercise("ex15", "Two ranks, one order")


def worlds(trial: Trial) -> list[list[list[int]]]:
    """What the ranks can record: alike, in other orders, more on one, nothing in common, three ranks."""
    some = [trial.rng.sample([1, 2, 4, 8, 16, 24, 32], 5) for _ in range(3)]
    return [[[4, 2, 1], [4, 2, 1]], [[1, 2, 4, 24], [24, 4, 1, 2]], [[8, 4], [2, 4, 8, 16]], [[1], [2]], some]


def common(sizes: list[list[int]]) -> list[int]:
    """The sizes that all have, largest first."""
    return sorted((size for size in sizes[0] if all(size in own for own in sizes)), reverse=True)


def recorded(world: World) -> list[dict[int, Any]]:
    """Graphs of every rank, made by us."""
    sizes = common([rank.sizes for rank in world.ranks])
    return world.run(lambda rank: {size: rank.record(size) for size in sizes})


def logs(trial: Trial, world: World, skip: int, expected: list[str], call: str) -> None:
    """Every rank was in these collectives, all_gather aside."""
    for rank in world.ranks:
        trial.equal(
            [what for what in rank.log[skip:] if what != "in all_gather"],
            expected,
            call=f"{call}, log of rank {rank.number}",
        )


@exercise.check(
    "record_all: what all ranks have, largest first, in one order",
    hints=(
        "A rank sees its own sizes. How does it learn what the others have?",
        "all_gather(rank.sizes) gives all lists to all. What is in every one of them is recorded, in a sorted order.",
        "common = set(everyone[0]).intersection(*everyone[1:]), then sorted(common, reverse=True).",
    ),
)
def records(trial: Trial) -> None:
    """Worlds whose ranks differ."""
    answer = trial.answer("record_all")
    for sizes in worlds(trial):
        world, right, call = World(sizes), common(sizes), f"record_all on ranks that can record {sizes}"
        with trial.running(call):
            got = world.run(answer)
        logs(trial, world, 0, [f"recording {size}" for size in right], call)
        for rank, graphs in zip(world.ranks, got, strict=True):
            trial.equal(rank.sizes, sizes[rank.number], call=f"rank.sizes after {call}")
            if not isinstance(graphs, dict) or {size: getattr(one, "size", None) for size, one in graphs.items()} != {
                size: size for size in right
            }:
                raise Wrong(call, f"a dict from size to graph, of {right}", show(graphs))


@exercise.check(
    "step: all ranks replay one size, or none does",
    hints=(
        "A rank with 1 request and one with 3: which graph do both replay?",
        "Decide on the most requests that any rank has, not on your own. A rank without requests takes part.",
        "most = max(rank.all_gather(requests)), and min((s for s in graphs if s >= most), default=None).",
    ),
)
def steps(trial: Trial) -> None:
    """Different loads, none at all, and too many."""
    answer = trial.answer("step")
    loads = [[3, 3], [1, 3], [4, 0], [0, 0], [9, 1], [2, 9], [9, 9], [8, 4]]
    loads += [[trial.rng.randint(0, 10) for _ in range(2)] for _ in range(4)]
    for load in loads:
        world = World([[8, 4, 2, 1]] * 2)
        graphs = recorded(world)
        right = min((size for size in (1, 2, 4, 8) if size >= max(load)), default=None)
        call = f"step with graphs of 8, 4, 2, 1 and {load} requests on the ranks"

        def program(rank: Rank, load: list[int] = load, graphs: list[dict[int, Any]] = graphs) -> Any:
            return answer(rank, dict(graphs[rank.number]), load[rank.number])

        with trial.running(call):
            got = world.run(program)
        logs(trial, world, 4, ["in an eager step" if right is None else f"replaying {right}"], call)
        trial.equal(got, [right, right], call=call)


@exercise.check(
    "shut_down: graphs first, the communicator last, on every rank",
    hints=(
        "Who still holds the communicator when it is closed?",
        "Destroy every graph, then close, and on all ranks: close is a collective.",
        "for graph in graphs.values(): graph.destroy(), then rank.close().",
    ),
)
def closes(trial: Trial) -> None:
    """With graphs, and without."""
    answer = trial.answer("shut_down")
    for sizes in ([4, 2, 1], [8], []):
        world = World([sizes] * 2)
        graphs = recorded(world)
        call = f"shut_down with graphs of {sizes}"
        with trial.running(call):
            world.run(lambda rank, graphs=graphs: answer(rank, graphs[rank.number]))  # type: ignore[misc]
        logs(trial, world, len(sizes), ["in close"], call)
        trial.equal([rank.alive for rank in world.ranks], [0, 0], call=f"{call}, graphs that are left")
