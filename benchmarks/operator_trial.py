"""One operator on the tape: captured with one sample, replayed with other values, compared with eager bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from onelaunch import emulator
from onelaunch.tape import RULES, CaptureError
from operator_samples import SEED, Sample, draw, geometry, same_bits

DTYPES = {"float32": torch.float32, "int64": torch.int64, "complex64": torch.complex64}
# They make memory and write nothing to it, so all that can be compared is its shape.
NO_CONTENT = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# ``tolerance`` is for operators that give other bits when they run twice, ``unwritten`` for memory nobody wrote to.
# ``not emulated`` is a refusal without a rule of CUDA's behind it. The first one found decides for an operator.
OUTCOMES = ("different", "not emulated", "tolerance", "unwritten", "bitwise", "refused", "not run")

Call = Callable[[Sample], Any]


def examine(op: Any, samples: int, replays: int, in_place: bool = False) -> dict[str, Any]:
    """What came of the first ``samples`` samples of each type that the operator takes, and of it as a whole.

    in_place: take the operator's variant that writes its result over its first argument.
    """
    function = op.get_inplace() if in_place else op
    row: dict[str, Any] = {}
    for name, dtype in DTYPES.items():
        if dtype in op.dtypes and not (row and dtype.is_complex):  # complex numbers where it takes no others
            content = op.name not in NO_CONTENT
            found = pairs(op, dtype, samples, in_place)
            row[name] = summary([{**trial(function, *p, replays, content), "empty": p[0].is_empty} for p in found])
    if not row:
        types = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in op.dtypes))
        return {"outcome": "not run", "reasons": [f"it takes only {types}" if types else "it has no kernel for a CPU"]}
    return {"outcome": worst(each["outcome"] for each in row.values()), **row}


def worst(outcomes: Iterable[str]) -> str:
    """The outcome of several: a fault if there is one, else what replayed, and ``refused`` if nothing did."""
    found = set(outcomes)
    return next((outcome for outcome in OUTCOMES if outcome in found), "not run")


def pairs(op: Any, dtype: torch.dtype, samples: int, in_place: bool = False) -> list[tuple[Sample, Sample]]:
    """Samples from all over the list that the operator has, each with one of other values.

    Those with empty tensors are few, and come last. in_place: only those whose result is as large as their input.
    """
    found = list(zip(draw(op, dtype, seed=0), draw(op, dtype, seed=1), strict=False))
    found = [pair for pair in found if not (in_place and pair[0].broadcasts)]
    empty = [pair for pair in found if pair[0].is_empty]
    full = [pair for pair in found if not pair[0].is_empty]
    some = spread(full, samples - min(len(empty), samples // 5))
    return some + spread(empty, samples - len(some))


def spread(items: list[Any], count: int) -> list[Any]:
    """``count`` of the items at equal distances, the first one among them; all if there are no more."""
    return [items[at * len(items) // count] for at in range(count)] if len(items) > count else items


def summary(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """How many samples had which outcome; what was refused, wrong or not run, each once.

    Empty tensors decide nothing where there are others: much that a GPU refuses it would not refuse for those.
    """
    decisive = [each for each in trials if not each["empty"]] or trials
    row: dict[str, Any] = {"outcome": worst(each["outcome"] for each in decisive), "samples": len(trials)}
    row["first"] = said_of(trials[0]) if trials else []
    for outcome in OUTCOMES:
        those = [each for each in trials if each["outcome"] == outcome]
        if those:
            row[outcome] = len(those)
    row["kernels"] = max((each.get("kernels", 0) for each in trials), default=0)
    row["unchanged"] = sum(each.get("changed") == 0 for each in trials)
    for key in ("refusals", "reasons"):
        said = [each[key] for each in trials if key in each]
        if said:
            row[key] = sorted(dict.fromkeys(said))
    return row


def said_of(found: dict[str, Any]) -> list[str]:
    """A trial's outcome, with rule and call where it was refused."""
    return [found["outcome"], *found.get("refusals", ())]


def trial(
    op: Callable[..., Any], sample: Sample, other: Sample, replays: int, with_content: bool = True
) -> dict[str, Any]:
    """Capture ``op`` with ``sample``, replay it with the values of ``other``, and compare with eager.

    with_content: whether what the results hold is defined.
    """

    def call(given: Sample) -> Any:
        with torch.no_grad():
            return op(*given.args, **given.kwargs)

    static, fresh = sample.copy(), sample.copy()
    changed = fresh.fill(other)
    memory = static.memory()
    try:
        expected = Eager(call, fresh)
        again = Eager(call, fresh)
        exact = expected.difference(again.outputs, again.sample, exact=True) is None
    except Exception as error:
        return {"outcome": "not run", "reasons": plain(error)}
    graph = emulator.CUDAGraph()
    torch.manual_seed(SEED)
    try:
        with emulator.graph(graph):
            outputs = call(static)
    except CaptureError as error:
        outcome = "not emulated" if RULES[error.rule].cuda_error is None else "refused"
        return {"outcome": outcome, "refusals": (error.rule, error.call)}
    except Exception as error:
        return {"outcome": "different", "reasons": "the capture raises " + plain(error)}
    assert graph.tape is not None
    row = {"outcome": "bitwise", "kernels": len(graph.tape.kernels), "changed": changed}
    if not all(same_bytes(a, b) for a, b in zip(memory, sample.memory(), strict=True)):
        return {**row, "outcome": "different", "reasons": "the capture changes what it reads"}
    for _ in range(replays):
        for mine, its in zip(memory, fresh.memory(), strict=True):
            mine.copy_(its)
        torch.manual_seed(SEED)
        try:
            graph.replay()
        except Exception as error:
            return {**row, "outcome": "different", "reasons": "the replay raises " + plain(error)}
        wrong = expected.difference(outputs, static, exact, with_content)
        if wrong is not None:
            return {**row, "outcome": "different", "reasons": wrong}
    if not with_content:
        return {**row, "outcome": "unwritten"}
    return row if exact else {**row, "outcome": "tolerance"}


class Eager:
    """What one eager call returned, and what it left in its arguments and in the generator."""

    def __init__(self, call: Call, sample: Sample) -> None:
        self.sample = sample.copy()
        torch.manual_seed(SEED)
        self.outputs = call(self.sample)
        self.generator = torch.get_rng_state()

    def difference(self, outputs: Any, sample: Sample, exact: bool, with_content: bool = True) -> str | None:
        """In words what another run has otherwise, or None. exact: bit for bit, else as PyTorch's tests compare."""
        mine, its = tree_leaves(self.outputs), tree_leaves(outputs)
        if len(mine) != len(its):
            return f"{len(its)} results for {len(mine)}"
        for a, b in zip(mine, its, strict=True):
            if not isinstance(a, Tensor):
                if a != b:
                    return f"a result is {b!r} and not {a!r}"
            elif described(a) != described(b):
                return f"a result is {described(b)} and not {described(a)}"
            elif with_content and not same(a, b, exact):
                return f"a result has other values, {described(a)}"
        for a, b in zip(self.sample.tensors(), sample.tensors(), strict=True):
            if geometry(a) != geometry(b) or not same(a, b, exact):
                return "an argument is left with other values"
        if not torch.equal(torch.get_rng_state(), self.generator):
            return "the generator is left in another state"
        return None


def same(a: Tensor, b: Tensor, exact: bool) -> bool:
    """Whether two tensors have the same bits, or are as close as PyTorch's tests ask."""
    if exact:
        return same_bits(a, b)
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        return False
    return True


def same_bytes(a: torch.UntypedStorage, b: torch.UntypedStorage) -> bool:
    """Whether two pieces of memory hold the same."""
    return torch.equal(*(torch.empty(0, dtype=torch.uint8).set_(storage) for storage in (a, b)))


def described(tensor: Tensor) -> str:
    """Type, shape and order in memory, in words."""
    what = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.size())}"
    if tensor.layout is not torch.strided:
        return f"{what}, {tensor.layout}"
    return f"{what} with strides {list(tensor.stride())}"


def plain(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
