"""Exercise 7, dispatch and replay: which steps run from a graph, what comes before, and whose the result is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from onelaunch.engine.core import Batch
    from onelaunch.engine.engine import Engine
    from onelaunch.grading.small import Runner

exercise = Exercise("ex07", "Dispatch and replay", seconds=90.0, heavy=True)

SIZES = [1, 2, 4]
CASES = ((3, 4), (4, 4), (2, 2), (1, 1), (3, 4))  # requests, and rows with padding


def replayed(trial: Trial, runner: Runner, size: int, padded_size: int) -> tuple[str, Batch, Any]:
    """Ask replay for a new batch: the call, the batch, and what came."""
    from onelaunch.grading import small

    batch = small.decode_batch(trial.rng, size, padded_size)
    call = f"replay(runner with graphs of {SIZES}, batch of {size} padded to {padded_size})"
    del runner.log[:]
    with trial.running(call, f"logits {[size, runner.vocab_size]}"):
        got = trial.answer("replay")(runner, batch)
    return call, batch, got


@exercise.check(
    "can_use_graph: decode steps that a recorded size holds, and no others",
    hints=(
        "Three requests run in a graph of four. A prompt of three tokens does not.",
        "Two things are asked: is it a decode step, and is it no larger than the largest size.",
        "batch.is_decode and batch.size <= runner.max_graph_bs",
    ),
)
def dispatch(trial: Trial) -> None:
    """Batches of all sizes, prefills, and a runner that has no graphs."""
    from onelaunch.grading import small

    for sizes in (SIZES, [8, 2], [], [4]):
        runner, largest = small.Runner(trial.rng, sizes), max(sizes, default=0)
        for phase in ("decode", "prefill"):
            for size in (1, 2, 3, 4, 5, 8, 9):
                batch = small.decode_batch(trial.rng, size, size)
                batch.phase = phase
                right = phase == "decode" and size <= largest
                call = f"can_use_graph(runner with graphs of {sorted(sizes)}, {phase} batch of {size})"
                with trial.running(call, show(right)):
                    got = trial.answer("can_use_graph")(runner, batch)
                trial.equal(got, right, call=call)


@exercise.check(
    "replay: all inputs are copied, then the graph of the padded size runs, once",
    hints=(
        "A replay looks at nothing but the fixed buffers. Two parts of the engine have some.",
        "The buffer has three inputs, the attention backend two more. Both know how to copy; the graph comes last.",
        "runner.buffer.copy_from(batch), runner.context.attn_backend.prepare_for_replay(batch), then the replay.",
    ),
)
def order(trial: Trial) -> None:
    """What is done to the runner, in order."""
    from onelaunch.grading import small

    runner = small.Runner(trial.rng, SIZES)
    for size, padded_size in CASES:
        call, _, _ = replayed(trial, runner, size, padded_size)
        right = ["copy_from", "prepare_for_replay", f"replay {padded_size}"]
        if [*sorted(runner.log[:-1]), *runner.log[-1:]] != right:
            raise Wrong(call, f"{right}, the copies in any order", show(runner.log))


@exercise.check(
    "replay: a row of logits for each request, none of a dummy's",
    hints=(
        "Whose are the last rows of a padded batch?",
        "The requests are the first rows. The caller samples one token from each row that it gets.",
        "runner.buffer.logits[: batch.size] are the rows of the requests.",
    ),
)
def rows(trial: Trial) -> None:
    """The values, read before anything else is replayed."""
    from onelaunch.grading import small

    runner = small.Runner(trial.rng, SIZES)
    for size, padded_size in (*CASES, (1, 2), (1, 4)):
        call, batch, got = replayed(trial, runner, size, padded_size)
        trial.equal(got, runner.logits(batch), call=call)


@exercise.check(
    "replay: what it returned stays what it was, whatever is replayed later",
    hints=(
        "Keep the logits of one step, run the next, and look at them again.",
        "A slice of the buffer is the buffer's memory, and each replay writes there.",
        "clone() after the replay, and after the slice: the whole buffer is more than anybody needs.",
    ),
)
def survives(trial: Trial) -> None:
    """Several results, kept while others are made."""
    from onelaunch.grading import small

    runner = small.Runner(trial.rng, SIZES)
    kept = []
    for size, padded_size in CASES:
        call, batch, got = replayed(trial, runner, size, padded_size)
        kept.append((call, runner.logits(batch), got))
        for asked, right, earlier in kept:
            hint = "overwritten-output: this is a view of the fixed buffer, or of a place that you use again."
            trial.equal(earlier, right, call=f"{asked}, read {'at once' if earlier is got else 'later'}", hint=hint)
        nbytes = got.untyped_storage().nbytes()
        if nbytes > right.nbytes:
            hint = "Slice first, then clone. A row of logits has as many numbers as the vocabulary."
            raise Wrong(call, f"{right.nbytes} bytes of its own, {size} rows", f"{nbytes} bytes", hint)


@exercise.check(
    "run_step: eagerly where no graph holds the batch, and somebody is told",
    hints=(
        "A batch of five, graphs of up to four: the text has to be right all the same.",
        "Ask can_use_graph. If it says no: note_eager, then eager, and its result goes back as it is.",
        "runner.note_eager(batch), then return eager(batch); with a graph, return replay(runner, batch).",
    ),
)
def fallback(trial: Trial) -> None:
    """Decode steps that fit and that do not, and a prefill."""
    from onelaunch.grading import small

    steps: tuple[tuple[Literal["prefill", "decode"], int, int], ...] = (
        ("decode", 3, 4),
        ("decode", 5, 5),
        ("prefill", 2, 2),
        ("decode", 4, 4),
        ("decode", 8, 8),
    )
    for phase, size, padded_size in steps:
        runner = small.Runner(trial.rng, SIZES)
        batch = small.decode_batch(trial.rng, size, padded_size)
        batch.phase = phase
        right = runner.logits(batch)

        def eager(given: Batch, runner: Runner = runner, right: Any = right) -> Any:
            runner.log.append("eager")
            return right.clone()

        call = f"run_step(runner with graphs of {SIZES}, {phase} batch of {size}, eager)"
        with trial.running(call):
            got = trial.answer("run_step")(runner, batch, eager)
        graph = phase == "decode" and size <= 4
        done = [what for what in runner.log if what.split()[0] in ("replay", "eager", "note_eager")]
        wanted = [f"replay {padded_size}"] if graph else ["note_eager", "eager"]
        if sorted(done) != sorted(wanted):
            raise Wrong(call, f"{' and '.join(wanted)}, once", show(done))
        trial.equal(got, right, call=call)


@exercise.check(
    "in the engine: SmolLM2 writes what Hugging Face's writes, every step from a graph",
    hints=(
        "Lengths grow at each step, and pages come. What is copied once is right once.",
        "Run the check again and look at the texts: which token is the first that is wrong?",
        "No condition around a copy: both, before every replay.",
    ),
)
def in_the_engine(trial: Trial) -> None:
    """Three requests in a graph of four rows; the results of all steps are kept to the end."""
    from onelaunch.grading import engines

    can_use, run_step = trial.answer("can_use_graph"), trial.answer("run_step")
    trial.answer("replay")
    call = "the engine with your run_step"
    used: list[Used] = []

    def plugged() -> AbstractContextManager[Any]:
        used.append(Used())
        return used[-1].plugged(can_use, run_step)

    engines.expect_text(trial, call, plugged, engines.replayed)
    if used[0].replays != engines.DECODE_STEPS:
        raise Wrong(call, f"{engines.DECODE_STEPS} replays, one for each decode step", str(used[0].replays))
    changed = [number for number, (logits, copy) in enumerate(used[0].kept, start=1) if not logits.equal(copy)]
    if changed:
        hint = "overwritten-output: clone what you return, after the replay."
        raise Wrong(f"{call}, the logits of step {changed[0]} read at the end", "what they were", "others", hint)


class Used:
    """An engine's use of run_step. replays: of graphs. kept: what each step returned, and a copy made at once."""

    def __init__(self) -> None:
        self.replays = 0
        self.kept: list[tuple[Any, Any]] = []

    @contextmanager
    def plugged(self, can_use: Callable[..., Any], run_step: Callable[..., Any]) -> Iterator[None]:
        """Put the learner's functions into the engine."""
        from onelaunch.engine.engine import Engine
        from onelaunch.grading import engines

        def forward(engine: Engine, batch: Batch) -> Any:
            return self.forward(engine, batch, run_step)

        graphs = engines.with_methods("onelaunch.engine.graph.GraphRunner", can_use_cuda_graph=can_use)
        with graphs, mock.patch.object(Engine, "forward", forward):
            yield

    def forward(self, engine: Engine, batch: Batch, run_step: Callable[..., Any]) -> Any:
        """``Engine.forward`` with ``run_step`` in it."""
        import torch

        def eager(given: Batch) -> Any:
            with engine.context.forward_batch(given):
                return engine.model(given.input_ids, given.positions, engine.context)[: given.size]

        with torch.inference_mode():
            engine.prepare_batch(batch)
            runner, graphs = engine.runner, engine.runner.graph_map
            watched: Any = {size: Watched(self, graph, runner, batch) for size, graph in graphs.items()}
            with mock.patch.object(runner, "graph_map", watched):
                got = run_step(runner, batch, eager)
            self.kept.append((got, got.clone()))
        return got


class Watched:
    """A graph whose replays are counted, and checked first where the runner has a checker."""

    def __init__(self, used: Used, graph: Any, runner: Any, batch: Batch) -> None:
        self._used, self._graph, self._runner, self._batch = used, graph, runner, batch

    def replay(self) -> None:
        """As the graph's own."""
        if self._runner.checker is not None:
            self._runner.checker.check(self._batch, self._graph.tape, self._runner.run_step)
        self._used.replays += 1
        self._graph.replay()
