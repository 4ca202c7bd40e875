"""A toy of ranks: threads that meet at collectives. Where they can never meet, that is said, and none hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Deadlock(RuntimeError):
    """The ranks wait for each other for ever."""


class World:
    """So many ranks. sizes: for each, the batch sizes that it has the memory to record."""

    def __init__(self, sizes: list[list[int]]) -> None:
        self.ranks = [Rank(self, number, own) for number, own in enumerate(sizes)]
        self._changed = threading.Condition()
        self._waiting: dict[int, tuple[str, Any]] = {}
        self._done: set[int] = set()
        self._round, self._values, self._failed = 0, [], ""  # type: tuple[int, list[Any], str]

    def run(self, program: Callable[[Rank], Any]) -> list[Any]:
        """What ``program`` returns on each rank. Raises what it raises: Deadlock only where no rank raised another."""
        results: list[Any] = [None] * len(self.ranks)
        errors: list[BaseException] = []
        self._done.clear()

        def work(rank: Rank) -> None:
            try:
                results[rank.number] = program(rank)
            except BaseException as error:
                errors.append(error)
            with self._changed:
                self._done.add(rank.number)
                self._look()

        threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in self.ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise min(errors, key=lambda error: isinstance(error, Deadlock))
        return results

    def meet(self, rank: int, what: str, value: Any = None) -> list[Any]:
        """Wait until every rank is at ``what``; the values of all, by rank. Raises Deadlock."""
        with self._changed:
            at = self._round
            self._waiting[rank] = (what, value)
            self._look()
            self._changed.wait_for(lambda: self._round != at or bool(self._failed))
            if self._round == at:
                raise Deadlock(self._failed)
            return list(self._values)

    def _look(self) -> None:
        if not self._waiting or len(self._waiting) + len(self._done) < len(self.ranks):
            return
        if not self._done and len({what for what, _ in self._waiting.values()}) == 1:
            self._values = [self._waiting[rank.number][1] for rank in self.ranks]
            self._waiting.clear()
            self._round += 1
        else:
            where = [
                self._waiting[rank.number][0] if rank.number in self._waiting else "at its end" for rank in self.ranks
            ]
            said = ", ".join(f"rank {number} is {place}" for number, place in enumerate(where))
            self._failed = f"the ranks wait for each other for ever: {said}"
        self._changed.notify_all()


class Rank:
    """One rank. number: which. sizes: what it has the memory to record. log: the collectives it was in, in order."""

    def __init__(self, world: World, number: int, sizes: list[int]) -> None:
        self.number, self.sizes = number, list(sizes)
        self.log: list[str] = []
        self.alive = 0  # graphs that hold the communicator
        self._world = world

    def _meet(self, what: str, value: Any = None) -> list[Any]:
        values = self._world.meet(self.number, what, value)
        self.log.append(what)
        return values

    def all_gather(self, value: Any) -> list[Any]:
        """The values of all ranks, by rank. All have to call it."""
        return self._meet("in all_gather", value)

    def record(self, size: int) -> Graph:
        """A graph of ``size`` rows with a collective in it. All have to record the same size."""
        if size not in self.sizes:
            raise MemoryError(f"rank {self.number} has no memory for a graph of {size}; it has for {self.sizes}")
        self._meet(f"recording {size}")
        self.alive += 1
        return Graph(self, size)

    def eager(self) -> None:
        """A step without a graph. All have to take it."""
        self._meet("in an eager step")

    def close(self) -> None:
        """Destroy the communicator. All have to call it, and no graph may hold it any more."""
        if self.alive:
            raise RuntimeError(f"rank {self.number} closes the communicator, and {self.alive} graphs still hold it")
        self._meet("in close")


class Graph:
    """A recorded step of ``size`` rows."""

    def __init__(self, rank: Rank, size: int) -> None:
        self.size, self._rank, self._destroyed = size, rank, False

    def replay(self) -> None:
        """Run it. All ranks have to replay the graph of this size."""
        self._rank._meet(f"replaying {self.size}")

    def destroy(self) -> None:
        """Let go of the communicator."""
        if not self._destroyed:
            self._destroyed = True
            self._rank.alive -= 1
