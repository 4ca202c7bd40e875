"""Exercise 6, the capture loop: warm-up on a side stream, one recording, all sizes into one pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from onelaunch import LLM

exercise = Exercise("ex06", "The capture loop", seconds=90.0, heavy=True)


class Step:
    """A step that can be followed: y = 10 x on ``size`` rows. log: of all steps, where and how each of them ran."""

    def __init__(self, size: int, log: list[str]) -> None:
        import torch

        self.size, self.log = size, log
        self.x, self.y = torch.ones(size), torch.zeros(size)

    def __call__(self) -> None:
        from onelaunch import emulator

        stream = "the side stream" if emulator.current_stream() != emulator.default_stream() else "the default stream"
        recorded = emulator.is_current_stream_capturing()
        self.log.append(f"recorded, size {self.size}" if recorded else f"run, size {self.size}, on {stream}")
        self.y.copy_(self.x * 10)


@contextmanager
def streams_watched(log: list[str]) -> Iterator[None]:
    """Note in ``log`` who waits for whom, and go back to the stream that was current."""
    from onelaunch import emulator, streams

    before, wait = emulator.current_stream(), emulator.Event.wait

    def waits(event: Any, stream: Any = None) -> None:
        waiter = emulator.current_stream() if stream is None else stream
        log.append("wait: default" if waiter == emulator.default_stream() else "wait: side")
        wait(event, stream)

    def host(*args: Any, **kwargs: Any) -> None:
        log.append("wait: host")

    try:
        with (
            mock.patch.object(streams.Event, "wait", waits),
            mock.patch.object(streams.Event, "synchronize", host),
            mock.patch.object(streams.Stream, "synchronize", host),
            mock.patch.object(emulator, "synchronize", host),
        ):
            yield
    finally:
        emulator.set_stream(before)


def warmed_up(trial: Trial) -> tuple[str, list[str]]:
    """Ask warm_up; the call, and what happened."""
    log: list[str] = []
    step, call = Step(3, log), "warm_up(step)"
    with trial.running(call), streams_watched(log):
        trial.answer("warm_up")(step)
    return call, log


@exercise.check(
    "warm_up: the step runs once, for real, on a side stream",
    hints=(
        "A warm-up is an ordinary run. What makes it one is where it runs, and that it comes first.",
        "The capture will use a side stream. What the step sets up for its stream has to be set up for such a one.",
        "side = cuda.Stream(), then `with cuda.stream(side): step()`.",
    ),
)
def runs_once(trial: Trial) -> None:
    """What ran, and the current stream afterwards."""
    from onelaunch import emulator

    call, log = warmed_up(trial)
    ran = [what for what in log if not what.startswith("wait")]
    trial.equal(ran, ["run, size 3, on the side stream"], call=f"{call}, and what the step did")
    with trial.running(call), streams_watched([]):
        trial.answer("warm_up")(Step(1, []))
        after = emulator.current_stream()
    if after != emulator.default_stream():
        hint = "`with cuda.stream(side):` goes back by itself; after set_stream nobody does."
        raise Wrong(f"{call}, then cuda.current_stream()", "the stream that was current before", show(after), hint)


@exercise.check(
    "warm_up: the side stream waits for what came before, and what comes next for the side stream",
    hints=(
        "Two streams run side by side, unless somebody says who comes first.",
        "The weights may still be on their way when the warm-up starts; the capture must not start before it ends.",
        "side.wait_stream(cuda.current_stream()) before the block, cuda.current_stream().wait_stream(side) after it.",
    ),
)
def joined(trial: Trial) -> None:
    """Who waits, before the step and after it. A host that waits will do as well."""
    call, log = warmed_up(trial)
    at = next((number for number, what in enumerate(log) if what.startswith("run")), len(log))
    before, after = log[:at], log[at + 1 :]
    if not {"wait: side", "wait: host"} & set(before):
        raise Wrong(f"{call}, before the step runs", "the side stream waits for the current one", "it does not wait")
    if not {"wait: default", "wait: host"} & set(after):
        raise Wrong(f"{call}, after the step ran", "the current stream waits for the side stream", "it does not wait")


@exercise.check(
    "record: one run under capture, into the pool that was asked for",
    hints=(
        "torch.cuda.graph takes the graph, and where its memory is to lie.",
        "A graph is made anew for each recording; the step runs once inside the block, and nowhere else.",
        "graph = cuda.CUDAGraph(), `with cuda.graph(graph, pool=pool): step()`, return graph.",
    ),
)
def recorded(trial: Trial) -> None:
    """Graphs with and without a pool, replayed on new input."""
    from onelaunch import emulator

    shared = emulator.graph_pool_handle()
    graphs: list[Any] = []
    for size, pool in ((4, shared), (2, shared), (3, None)):
        log: list[str] = []
        step = Step(size, log)
        step()
        del log[:]
        call = f"record(step of size {size}, {'pool' if pool is not None else None})"
        with trial.running(call, "a graph"):
            graph = trial.answer("record")(step, pool)
        if not isinstance(graph, emulator.CUDAGraph) or any(graph is other for other in graphs):
            raise Wrong(call, "a new cuda.CUDAGraph", show(graph))
        graphs.append(graph)
        trial.equal(log, [f"recorded, size {size}"], call=f"{call}, and what the step did")
        step.x.fill_(trial.rng.randint(2, 99))
        right = step.x * 10
        with trial.running(f"{call}, then replay()"):
            graph.replay()
        trial.equal(step.y, right, call=f"{call}, then replay() on new input")
        if (tuple(graph.pool()) == tuple(shared)) != (pool is not None):
            raise Wrong(f"{call}, then pool()", f"{'that' if pool else 'a new'} pool", show(tuple(graph.pool())))


def loop(trial: Trial, sizes: list[int]) -> None:
    """Ask capture_graphs for these sizes."""
    log: list[str] = []
    steps: dict[int, Step] = {}

    def make_step(size: int) -> Step:
        log.append(f"made, size {size}")
        steps[size] = Step(size, log)
        return steps[size]

    call, given = f"capture_graphs({sizes}, make_step)", list(sizes)
    with trial.running(call, "a dict of graphs"):
        graphs = trial.answer("capture_graphs")(given, make_step)
        keys = sorted(graphs)
    right = []
    for size in sorted(sizes, reverse=True):
        right += [f"made, size {size}", f"run, size {size}, on the side stream", f"recorded, size {size}"]
    if log != right:
        raise Wrong(call, " -> ".join(right), " -> ".join(log) or "nothing done")
    trial.equal(keys, sorted(sizes), call=f"{call}, the sizes in what it returns")
    if given != sizes:
        raise Wrong(call, "the list as it was", show(given), "sorted(sizes, reverse=True) makes a new one.")
    for size, step in steps.items():
        step.x.fill_(trial.rng.randint(2, 99))
        wanted = step.x * 10
        with trial.running(f"{call}[{size}].replay()"):
            graphs[size].replay()
        trial.equal(step.y, wanted, call=f"{call}[{size}].replay()")


@exercise.check(
    "capture_graphs: each size is made, warmed up and recorded, the largest first",
    hints=(
        "What the largest step needs, every smaller one finds there. The other way round, each needs more.",
        "For each size in descending order: make_step, then warm_up, then record. The list may come in any order.",
        "for size in sorted(sizes, reverse=True), and a dict that takes each graph under its size.",
    ),
)
def largest_first(trial: Trial) -> None:
    """What is done, in order, and what each graph of the result does."""
    for sizes in ([1, 2, 4], [4, 1, 2], [3]):
        loop(trial, sizes)
    loop(trial, trial.rng.sample(range(1, 20), 4))


@exercise.check(
    "in the engine: SmolLM2 writes what Hugging Face's writes, all graphs in one pool",
    hints=(
        "Three graphs never run at the same time. Do they need memory three times?",
        "The first graph makes a pool; each later one is recorded with pool=first.pool().",
        "pool = None before the loop; after each recording, pool = graph.pool().",
    ),
)
def in_the_engine(trial: Trial) -> None:
    """Three requests; graphs of 4, 2 and 1 rows, and the memory that they take."""
    from onelaunch.grading import engines

    capture_graphs = trial.answer("capture_graphs")
    for name in ("warm_up", "record"):
        trial.answer(name)

    def capture(runner: Any) -> None:
        from onelaunch.engine.core import Batch

        runner.context.attn_backend.init_capture_graph(runner.graph_bs_list)

        def make_step(size: int) -> Callable[[], None]:
            batch = Batch([runner.dummy_req] * size, "decode")
            runner.context.attn_backend.prepare_for_capture(batch)
            runner.buffer.set_batch(batch)
            return lambda: runner.run_step(batch)

        runner.graph_map = dict(capture_graphs(list(runner.graph_bs_list), make_step))

    def plugged() -> AbstractContextManager[Any]:
        return engines.with_methods("onelaunch.engine.graph.GraphRunner", _capture_graphs=capture)

    def pools(engine: LLM) -> dict[tuple[int, ...], int]:
        graphs: Any = engine.engine.runner.graph_map.values()
        return {tuple(graph.pool()): graph.pool().reserved_bytes for graph in graphs}

    call = "the engine with your capture_graphs, for the sizes 1, 2 and 4"
    found = engines.expect_text(trial, call, plugged, pools, cuda_graph_bs=[1, 2, 4])
    if len(found) > 1:
        least, taken = max(found.values()) / 2**20, sum(found.values()) / 2**20
        got = f"{len(found)} pools, {taken:.2f} MiB together"
        raise Wrong(f"{call}, then the graphs' pool()", f"one pool, {least:.2f} MiB", got)
