"""Exercise 9, six steps that a capture refuses: each answer is recorded, and replayed with values it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from torch import Tensor

    from onelaunch.graphs import CUDAGraph

exercise = Exercise("ex09", "Six steps that a capture refuses")

WITHIN = 1e-5


def captured(trial: Trial, call: str, step: Callable[[], Any]) -> tuple[CUDAGraph, Any]:
    """Warm ``step`` up and record it. Raises Wrong where that is refused, with the refusal's remedy as the hint."""
    from onelaunch import emulator as cuda
    from onelaunch.tape import CaptureError

    with trial.running(f"{call}, to warm up"):
        step()
    graph = cuda.CUDAGraph()
    with trial.running(f"{call}, in a capture", "a step that is captured"):
        try:
            with cuda.graph(graph):
                out = step()
        except CaptureError as error:
            raise refused(call, error) from error
    return graph, out


def refused(call: str, error: Any) -> Wrong:
    """A refusal, with its remedy as the hint."""
    on = f" on '{error.name}'" if error.name else ""
    line = f" (line {error.where.line} of its cell)" if error.where.file != __file__ else ""
    text = f"refused: {error.call}{on}{line}; {error.why}"
    return Wrong(f"{call}, in a capture", "a step that is captured", text, error.fix)


def replayed(
    trial: Trial,
    call: str,
    step: Callable[..., Any],
    rounds: Sequence[tuple[Sequence[Tensor], Tensor, str]],
    before: Callable[[int], None] | None = None,
) -> CUDAGraph:
    """Capture ``step`` on fixed tensors, and compare a replay for each round with what is right.

    rounds: the arguments' values, what is right, and a hint; the first is the one that is captured. before: called
    with the number of a round before its step.
    """
    fixed = [value.clone() for value in rounds[0][0]]
    if before is not None:
        before(0)
    graph, out = captured(trial, call, lambda: step(*fixed))
    for number, (values, right, hint) in enumerate(rounds):
        if before is not None:
            before(number)
        for tensor, value in zip(fixed, values, strict=True):
            tensor.copy_(value)
        with trial.running(f"{call}, at replay {number + 1}"):
            graph.replay()
            got = out.clone()
        given = ", ".join(show(value.tolist()) for value in values if value.numel() <= 16)
        about = f"{call}, replayed with {given}" if given else f"{call}, at replay {number + 1}"
        trial.equal(got, right, call=about, hint=hint, within=WITHIN)
        for tensor, value in zip(fixed, values, strict=True):
            trial.equal(tensor, value, call=f"{about}, then its arguments", hint="Leave the arguments as they are.")
    return graph


@exercise.check(
    "add_positions: the rows are picked on the device",
    hints=(
        "int(position) waits for a number. Which operation takes all the numbers and never shows them to the host?",
        "A tensor of int64 is an index: one kernel picks all the rows.",
        "x + table[positions]",
    ),
)
def rows_by_index(trial: Trial) -> None:
    """Positions in any order, equal ones, the last one."""
    import torch

    table = torch.arange(48.0).reshape(16, 3)
    rounds = []
    for chosen in ([5, 0, 5, 15], [1, 2, 3, 4], [15, 15, 0, 7], trial.rng.sample(range(16), 4)):
        x = torch.tensor([[trial.rng.randint(0, 8) / 4 for _ in range(3)] for _ in chosen])
        right = torch.tensor([[a + b for a, b in zip(row, table[at].tolist(), strict=True)]
                              for row, at in zip(x.tolist(), chosen, strict=True)])  # fmt: skip
        rounds.append(((x, table, torch.tensor(chosen)), right, "The replay has other positions than the capture."))
    replayed(trial, "add_positions(x, table, positions)", trial.answer("add_positions"), rounds)


@exercise.check(
    "cap: a kernel decides, for each row",
    hints=(
        "The host asks whether a row is too large. Compute both results, and let a kernel choose.",
        "amax(-1, keepdim=True) is one number for each row, and torch.where chooses by it.",
        "largest = logits.abs().amax(-1, keepdim=True); where(largest > limit, logits * (limit / largest), logits)",
    ),
)
def decided_on_the_device(trial: Trial) -> None:
    """Rows above, below and at the limit, of both signs, and of zeros."""
    import torch

    limit = 4.0
    batches = [
        [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [0.0, 0.5, 0.0]],
        [[1.0, 2.0, 8.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]],
        [[1.0, -8.0, 2.0], [4.0, -4.0, 1.0], [-3.0, -2.0, -1.0]],
        [[trial.rng.randint(-36, 36) / 4 for _ in range(3)] for _ in range(3)],
    ]
    rounds = []
    for rows in batches:
        right = []
        for row in torch.tensor(rows).tolist():
            largest = max(abs(value) for value in row)
            right.append([value * limit / largest for value in row] if largest > limit else row)
        hint = "Each row for itself; by its largest absolute value; and a row that is not above the limit as it is."
        rounds.append(((torch.tensor(rows),), torch.tensor(right), hint))
    answer = trial.answer("cap")
    replayed(trial, f"cap(logits, {limit})", lambda logits: answer(logits, limit), rounds)


@exercise.check(
    "mean_of_alive: the shape is fixed, and dead rows count for nothing",
    hints=(
        "How many rows values[alive] has, the host would have to know. Keep all rows, and make the dead ones harmless.",
        "torch.where(alive[:, None], values, 0.0) has a fixed shape. NaN times zero is NaN, so a product will not do.",
        "Divide the sum by alive.sum().clamp(min=1): a mean of no rows would be 0 / 0.",
    ),
)
def mean_with_a_mask(trial: Trial) -> None:
    """All alive, some, none; dead rows with NaN and infinity."""
    import torch

    nan, inf = float("nan"), float("inf")
    batches: list[tuple[list[list[float]], list[bool], str]] = [
        ([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]], [True, True, True], ""),
        ([[1.0, 2.0], [7.0, 9.0], [3.0, 6.0]], [True, False, True], "Divide by the number of rows that are alive."),
        ([[nan, 2.0], [7.0, inf], [3.0, 6.0]], [False, False, True], "A dead row may hold NaN, and 0 * NaN is NaN."),
        ([[1.0, 2.0], [7.0, 9.0], [3.0, 6.0]], [False, False, False], "No row is alive: zeros."),
        ([[trial.rng.randint(0, 8) / 4, -1.0] for _ in range(3)], [trial.rng.random() < 0.5 for _ in range(3)], ""),
    ]
    rounds = []
    for rows, alive, hint in batches:
        kept = [row for row, lives in zip(rows, alive, strict=True) if lives]
        right = [sum(row[at] for row in kept) / max(len(kept), 1) for at in range(2)]
        rounds.append(((torch.tensor(rows), torch.tensor(alive)), torch.tensor(right), hint))
    replayed(trial, "mean_of_alive(values, alive)", trial.answer("mean_of_alive"), rounds)


@exercise.check(
    "Ban: the host writes into fixed memory, and the step reads that",
    hints=(
        "A list has a length that changes. What has the same size for every list of tokens?",
        "One bool for each token of the vocabulary, made in __init__. prepare fills it, and step reads it.",
        "In prepare: self.banned.zero_(); self.banned[tokens] = True. In step: masked_fill(self.banned, -inf).",
    ),
)
def lists_before_the_replay(trial: Trial) -> None:
    """Lists that shrink, grow, are empty, and hold everything."""
    import torch

    vocab, inf = 6, float("inf")
    some = trial.rng.sample(range(vocab), trial.rng.randint(1, vocab))
    lists: list[list[int]] = [[2, 4], [3], [], [5, 0, 1], [1, 2, 3, 4, 5], some, list(range(vocab))]
    rounds = []
    for tokens in lists:
        logits = torch.tensor([[trial.rng.randint(-8, 8) / 4 for _ in range(vocab)] for _ in range(2)])
        right = [[-inf if at in tokens else value for at, value in enumerate(row)] for row in logits.tolist()]
        hint = f"The last list was {tokens}: these tokens, and no others, in the memory that was recorded."
        rounds.append(((logits,), torch.tensor(right), hint))
    call = "Ban(6), prepare(tokens) before each step, and step(logits)"
    with trial.running("Ban(6)"):
        ban = trial.answer("Ban")(vocab)

    def before(number: int) -> None:
        with trial.running(f"prepare({lists[number]})"):
            ban.prepare(list(lists[number]))

    replayed(trial, call, lambda logits: ban.step(logits), rounds, before)


@exercise.check(
    "record_draws: replays go on where the generator is",
    hints=(
        "Who moves a generator on, when no Python runs? The graph has to know of it.",
        "graph.register_generator_state(generator), before the capture. And the warm-up draws numbers, too.",
        "before = generator.get_state(); step(); generator.set_state(before); then register, then capture.",
    ),
)
def registered(trial: Trial) -> None:
    """Two steps, one that draws twice; seeded anew between replays."""
    import torch

    from onelaunch import emulator as cuda
    from onelaunch.tape import CaptureError

    for seed, draws in ((1, 1), (trial.rng.randrange(10**6), 2)):
        generator, twin = (torch.Generator().manual_seed(seed) for _ in range(2))
        scale: list[Any] = []

        def step(source: Any, made: list[Any], draws: int = draws) -> Any:
            if not made:
                made.append(torch.full((3,), 2.0))  # what a step makes on its first run
            return made[0] * sum(torch.rand(3, generator=source) for _ in range(draws))

        def right(twin: Any = twin) -> Any:
            return step(twin, [])

        expected = [right() for _ in range(3)]
        again = twin.manual_seed(seed + 1)
        expected += [right(again) for _ in range(2)]
        call = f"record_draws(step, generator), {draws} draw{'s' * (draws > 1)} a step"
        with trial.running(call, "graph, out"):
            try:
                graph, out = trial.answer("record_draws")(
                    lambda source=generator, made=scale, step=step: step(source, made), generator
                )
            except CaptureError as error:
                raise refused(call, error) from error
        if not isinstance(graph, cuda.CUDAGraph):
            raise Wrong(call, "graph, out: a cuda.CUDAGraph first", show(graph))
        for number, value in enumerate(expected):
            if number == 3:
                generator.manual_seed(seed + 1)
            with trial.running(f"{call}; graph.replay()"):
                graph.replay()
                got = out.clone()
            place = "after generator.manual_seed" if number >= 3 else f"at replay {number + 1}"
            hint = (
                "A run before the capture draws numbers as well. Put the generator back to where it was."
                if number == 0
                else "Each replay draws on from the generator that you were given."
            )
            trial.equal(got, value, call=f"{call}, {place}", hint=hint)


@exercise.check(
    "gated: forked and joined, and the second product on the side stream",
    hints=(
        "The side stream is not part of the capture until it waits for a stream that is.",
        "Fork: side waits for the current stream. Join: the current stream waits for side, before it reads the result.",
        "side.wait_stream(main) before the with block, main.wait_stream(side) before left * right.",
    ),
)
def two_streams(trial: Trial) -> None:
    """What is recorded, on which stream, and what comes out."""
    import torch

    from onelaunch import emulator as cuda

    def some(*shape: int) -> Tensor:
        count = shape[0] * shape[1]
        return torch.tensor([trial.rng.randint(-4, 4) / 4 for _ in range(count)]).reshape(shape)

    rounds = []
    for _ in range(3):
        x, gate, up = some(2, 4), some(4, 3), some(4, 3)
        left = x.double() @ gate.double()
        right = left / (1 + torch.exp(-left)) * (x.double() @ up.double())
        rounds.append(((x, gate, up), right.float(), "Nothing may be left out of the graph."))
    side, answer = cuda.Stream(), trial.answer("gated")
    addresses: list[int] = []

    def step(x: Tensor, gate: Tensor, up: Tensor) -> Any:
        addresses[:] = [gate.data_ptr(), up.data_ptr()]
        return answer(x, gate, up, side)

    call = "gated(x, gate, up, side)"
    graph = replayed(trial, call, step, rounds)
    tape = graph.tape
    assert tape is not None  # it was replayed
    streams: dict[int, set[int]] = {}
    for kernel in tape.kernels:
        for ref in kernel.reads:
            streams.setdefault(tape.buffers[ref.buffer].address, set()).add(kernel.stream)
    main, other = (streams.get(address, set()) for address in addresses)
    last = tape.kernels[-1].stream
    if len(main) != 1 or len(other) != 1 or main == other or last not in main:
        found = [f"{kernel.name} on stream {kernel.stream}" for kernel in tape.kernels]
        hint = "x @ up stands in the with block, and nothing else does."
        raise Wrong(call, "x @ up on side, everything else on the current stream", ", ".join(found), hint)
