"""Exercise 13, sampling inside the graph: a sampler without a host, and draws that are new at each replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from torch import Generator, Tensor

exercise = Exercise("ex13", "Sampling inside the graph", seconds=20.0)

ROWS = 1500  # of a question about shares: one is off by 0.013 (a standard deviation) or less
OFF = 0.07

Inputs = tuple["Tensor", "Tensor", "Tensor"]


def rows(trial: Trial, temperatures: list[float], top_ks: list[int], vocab: int = 8) -> Inputs:
    """Logits, all different and near each other, for such limits."""
    import torch

    logits = [[number / 100 for number in trial.rng.sample(range(100), vocab)] for _ in top_ks]
    return torch.tensor(logits), torch.tensor(temperatures), torch.tensor(top_ks)


def wide(trial: Trial) -> Inputs:
    """Sixteen rows of 50 tokens, each about as probable: two draws agree in all of them by no chance."""
    return rows(trial, [1.0] * 16, [50] * 16, vocab=50)


def seeded(seed: int) -> Generator:
    """A generator with this seed."""
    import torch

    return torch.Generator().manual_seed(seed)


def sampled(trial: Trial, inputs: Inputs, generator: Generator, what: str = "sample(...)") -> Tensor:
    """What sample returns: one int64 a row."""
    import torch

    with trial.running(what):
        got = trial.answer("sample")(*inputs, generator)
    tokens(trial, got, len(inputs[0]), what)
    assert isinstance(got, torch.Tensor)
    return got.clone()


def tokens(trial: Trial, got: Any, count: int, call: str) -> None:
    """Raise Wrong unless this is a tensor of as many int64."""
    import torch

    if not isinstance(got, torch.Tensor) or got.dtype != torch.int64 or list(got.shape) != [count]:
        raise Wrong(call, f"a token a row: int64, shape [{count}]", show(got))


def within_limits(got: Tensor, inputs: Inputs, what: str) -> None:
    """Raise Wrong where a row has a token that its limits do not allow."""
    logits, temperatures, top_ks = (one.tolist() for one in inputs)
    for row, (token, heat, top_k) in enumerate(zip(got.tolist(), temperatures, top_ks, strict=True)):
        count = 1 if heat == 0 else top_k
        allowed = sorted(range(len(logits[row])), key=lambda at: -logits[row][at])[:count]
        if token not in allowed:
            call = f"{what} of logits {show(logits[row])}, temperature {heat:g}, top_k {top_k}"
            raise Wrong(call, f"one of the tokens {sorted(allowed)}", show(token))


@exercise.check(
    "sample: greedy at temperature 0, else one of the top k, row by row",
    hints=(
        "Each row has its own k, so topk with one k is not enough. Which logit is the smallest that may be drawn?",
        "Sort the logits of all rows, and gather the one at place top_k - 1. What is below it becomes -inf.",
        "least = logits.sort(-1, descending=True).values.gather(1, top_ks[:, None] - 1); torch.where for greedy rows.",
    ),
)  # fmt: skip
def limits(trial: Trial) -> None:
    """Mixed rows, many times; the arguments stay."""
    for _ in range(6):
        heats = [trial.rng.choice([0.0, 1.0, 3.0]) for _ in range(12)]
        inputs = rows(trial, [*heats, 0.0, 2.0, 2.0], [*(trial.rng.randint(1, 8) for _ in heats), 8, 1, 3])
        before, generator = [one.clone() for one in inputs], seeded(trial.rng.randrange(1000))
        for _ in range(6):
            within_limits(sampled(trial, inputs, generator), inputs, "sample")
        for name, now, old in zip(("logits", "temperatures", "top_ks"), inputs, before, strict=True):
            trial.equal(now, old, call=f"{name} after sample(...)", hint="sample changes none of its arguments.")


@exercise.check(
    "sample: as often as the softmax says",
    hints=(
        "Which comes first: the temperature, or the softmax? And is the draw a draw, or is it the largest?",
        "probs = (kept / temperature).softmax(-1), with -inf for what may not be drawn; then a draw from probs.",
        "(probs / noise).argmax(-1), where noise = torch.empty_like(probs).exponential_(generator=generator).",
    ),
)
def shares(trial: Trial) -> None:
    """Two kinds of rows in one batch, 1500 of each, counted."""
    import torch

    for kinds in (((1.0, 5), (0.5, 5)), ((2.0, 3), (1.0, 2))):
        values = [0.1 * number for number in trial.rng.sample([0, 5, 12, 20, 24], 5)]
        logits = torch.tensor([values] * (2 * ROWS))
        heats = torch.tensor([heat for heat, _ in kinds for _ in range(ROWS)])
        top_ks = torch.tensor([top_k for _, top_k in kinds for _ in range(ROWS)])
        got = sampled(trial, (logits, heats, top_ks), seeded(trial.rng.randrange(1000)), "sample(3000 rows)")
        for (heat, top_k), drawn in zip(kinds, got.split(ROWS), strict=True):
            least = sorted(values)[-top_k]
            weights = torch.tensor([value / heat if value >= least else float("-inf") for value in values])
            right, share = weights.softmax(0), drawn.bincount(minlength=5) / ROWS
            if (share[:5] - right).abs().max().item() > OFF:
                given = [round(value, 1) for value in values]
                call = f"shares in {ROWS} draws, logits {given}, temperature {heat:g}, top_k {top_k}"
                expected, shown = ([round(one, 2) for one in part.tolist()] for part in (right, share))
                raise Wrong(call, show(expected), show(shown))


@exercise.check(
    "sample: all chance comes from the generator",
    hints=(
        "Where do the random numbers of a call come from if nobody says so?",
        "Hand generator= to what draws. Seed nothing: who calls sample has done so.",
        "noise.exponential_(generator=generator), or torch.multinomial(probs, 1, generator=generator).",
    ),
)
def chance(trial: Trial) -> None:
    """The same seed twice, a second call, another seed, and PyTorch's own generator."""
    import torch

    inputs, own = wide(trial), torch.default_generator.get_state()
    first, again = seeded(5), seeded(5)
    one, two = sampled(trial, inputs, first), sampled(trial, inputs, first)
    trial.equal(sampled(trial, inputs, again), one, call="sample(...) with a generator of the same seed")
    trial.equal(sampled(trial, inputs, again), two, call="the second sample(...) with a generator of the same seed")
    for call, got in (("a second sample(...)", two), ("sample(...) with seed 6", sampled(trial, inputs, seeded(6)))):
        if got.equal(one):
            raise Wrong(f"{call} for the same logits", "other draws", f"the same: {show(got)}")
    if not torch.default_generator.get_state().equal(own):
        raise Wrong("sample(...)", "PyTorch's own generator as it was", "it was advanced or seeded")


def recorded(trial: Trial, inputs: Inputs, generator: Generator) -> tuple[Any, Tensor]:
    """What record returns: a graph and its tokens."""
    from onelaunch import emulator

    with trial.running("record(...)", "a capture that is accepted"):
        made = trial.answer("record")(*inputs, generator)
    if not isinstance(made, (tuple, list)) or len(made) != 2 or not isinstance(made[0], emulator.CUDAGraph):
        raise Wrong("record(...)", "a graph and its tokens", show(made), "return graph, tokens")
    graph, out = made
    tokens(trial, out, len(inputs[0]), "tokens of record(...)")
    if graph.tape is None:
        raise Wrong("record(...)", "a recorded graph", "a graph without a capture", "with cuda.graph(graph): ...")
    return graph, out


def replayed(trial: Trial, graph: Any, out: Tensor) -> Tensor:
    """What a replay writes."""
    with trial.running("graph.replay()"):
        graph.replay()
    return out.clone()


@exercise.check(
    "record: the capture accepts it",
    hints=(
        "Read what was refused: a number that the host asked for, or a generator that the graph does not know?",
        "int(top_ks.max()), an if on a temperature and a loop over rows all ask the device.",
        "graph.register_generator_state(generator), before with cuda.graph(graph); sort and gather, not topk(k).",
    ),
)
def accepted(trial: Trial) -> None:
    """Rows with limits of all kinds. What a replay writes is the next check's."""
    inputs = rows(trial, [0.0, 1.0, 0.5, 2.0], [8, 1, 3, 8])
    generator = seeded(trial.rng.randrange(1000))
    graph, out = recorded(trial, inputs, generator)
    replayed(trial, graph, out)


@exercise.check(
    "a replay draws anew, and the same seed gives the same draws",
    hints=(
        "Do the tokens that you return belong to the graph? Is the draw among what is recorded?",
        "Everything from the logits to the token belongs into the with block, and what is returned is what it made.",
        "with cuda.graph(graph): tokens = sample(logits, temperatures, top_ks, generator), then return graph, tokens.",
    ),
)
def fresh(trial: Trial) -> None:
    """Replays after each other, after the seed again, and beside sample itself."""
    inputs, generator = wide(trial), seeded(3)
    graph, out = recorded(trial, inputs, generator)
    generator.manual_seed(11)
    series = [replayed(trial, graph, out) for _ in range(4)]
    for at, got in enumerate(series[1:], start=2):
        if any(got.equal(earlier) for earlier in series[: at - 1]):
            raise Wrong(f"replay {at}", "draws of its own", f"those of an earlier replay: {show(got)}")
    generator.manual_seed(11)
    for at, right in enumerate(series, start=1):
        trial.equal(replayed(trial, graph, out), right, call=f"replay {at} after the same seed")
    eager = seeded(11)
    for at, right in enumerate(series, start=1):
        got = sampled(trial, inputs, eager)
        trial.equal(right, got, call=f"replay {at} after manual_seed(11), beside call {at} of sample")


@exercise.check(
    "a replay reads the logits and limits of its own step",
    hints=(
        "What did the requests want when it was recorded? Others want something else.",
        "No decision of Python on temperatures, and no copy before the capture: the graph reads the tensors you got.",
        "Hand logits, temperatures and top_ks to sample as they are; torch.where chooses between greedy and drawn.",
    ),
)
def other_requests(trial: Trial) -> None:
    """Recorded with greedy rows, replayed with others; and the other way round."""
    greedy, hot, narrow = ([0.0] * 16, [50] * 16), ([1.0] * 16, [50] * 16), ([1.0] * 16, [2] * 16)
    for first, *later in ((greedy, hot, narrow), (hot, greedy, narrow, hot), (narrow, hot)):
        fixed, generator = rows(trial, *first, vocab=50), seeded(4)
        graph, out = recorded(trial, fixed, generator)
        for limits in later:
            for target, source in zip(fixed, rows(trial, *limits, vocab=50), strict=True):
                target.copy_(source)
            generator.manual_seed(21)
            right = sampled(trial, fixed, seeded(21))
            got = replayed(trial, graph, out)
            call = f"a replay, after temperatures became {limits[0][0]:g} and top_ks {limits[1][0]}"
            trial.equal(got, right, call=call)
