"""What a step returns: garbage until the first replay in every type, any nest, aliases of inputs, memory that grew."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onelaunch import emulator

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def captured(step: Callable[[], Any], **options: Any) -> tuple[emulator.CUDAGraph, Any]:
    graph = emulator.CUDAGraph()
    with emulator.graph(graph, **options):
        out = step()
    assert graph.tape is not None
    return graph, out


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_output_of_any_type_is_garbage_first_and_right_then(dtype: torch.dtype) -> None:
    x = torch.tensor([0.0, 1.0, 0.0])
    graph, out = captured(lambda: x.to(dtype, copy=True))
    before = out.to(torch.complex64)
    assert not torch.equal(before, x.to(torch.complex64))
    if dtype.is_floating_point or dtype.is_complex:
        assert before.isnan().all()
    graph.replay()
    assert torch.equal(out.to(torch.float32), x)
    x.copy_(torch.tensor([1.0, 0.0, 1.0]))
    graph.replay()
    assert torch.equal(out.to(torch.float32), x)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_copies_between_any_types_are_eagers(source: torch.dtype) -> None:
    x = torch.tensor([0.0, 1.0, 1.0]).to(source)
    targets = [torch.zeros(3, dtype=dtype) for dtype in DTYPES]
    graph, _ = captured(lambda: [target.copy_(x) for target in targets])
    assert not any(target.to(torch.float32).any() for target in targets)
    x.copy_(torch.tensor([1.0, 0.0, 1.0]))
    graph.replay()
    for target in targets:
        expected = torch.zeros(3, dtype=target.dtype).copy_(x)
        assert torch.equal(target.to(torch.complex64), expected.to(torch.complex64))


class Point(nn.Module):
    """A step that returns objects of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Tensor | None = None


def test_a_step_returns_whatever_it_likes() -> None:
    pair, holder, x = namedtuple("pair", "a b"), Point(), torch.ones(2)

    def step() -> Any:
        holder.last = x + 5
        return OrderedDict(one=x + 1, many=[pair(x + 2, None), (x + 3, "text", 7)], set={"x": {"deep": [[x + 4]]}})

    graph, out = captured(step)
    x.fill_(10)
    graph.replay()
    many = out["many"]
    found = [out["one"], many[0].a, many[1][0], out["set"]["x"]["deep"][0][0], holder.last]
    assert [t.tolist() for t in found] == [[10 + n] * 2 for n in range(1, 6)]
    assert (many[0].b, many[1][1:]) == (None, ("text", 7))


def test_an_output_may_be_an_input_a_view_of_one_or_the_same_tensor_twice() -> None:
    x = torch.arange(6.0).view(2, 3)
    graph, (same, view, strided, made, again) = captured(lambda: (x, x.t()[1:], x.unfold(1, 2, 1), (y := x + 1), y))
    assert same is x
    assert made is again
    assert view.data_ptr() == x[:, 1:].data_ptr()
    assert torch.equal(strided, torch.arange(6.0).view(2, 3).unfold(1, 2, 1))  # an input is no garbage
    x.mul_(2)
    graph.replay()
    assert torch.equal(made, x + 1)


@pytest.mark.parametrize("executor", ["python", "script", "native"])
def test_an_out_argument_grows_into_the_graphs_memory(executor: str, play_with: Callable[[str], None]) -> None:
    play_with(executor)
    x, outside, cache = torch.ones(3), torch.empty(0), torch.arange(8.0)

    def step() -> tuple[Tensor, ...]:
        inside = torch.empty(0)
        torch.add(x, 1, out=inside)
        torch.mul(inside, 2, out=outside)
        torch.mul(inside, 3, out=cache[:0])  # takes the first three
        made = torch.empty(0)
        made.resize_(3).copy_(inside)
        return inside, made

    graph, (inside, made) = captured(step)
    for tensor in (inside, outside, made):
        assert tensor.shape == (3,)
        assert tensor.isnan().all()
    assert torch.equal(cache, torch.arange(8.0))
    kinds = [buffer.kind for buffer in graph.tape.buffers]
    assert sorted(set(kinds)) == ["input", "output", "state"]
    assert kinds.count("output") == 3
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert inside.tolist() == made.tolist() == [value + 1] * 3
        assert outside.tolist() == [2 * (value + 1)] * 3
        assert cache.tolist() == [3 * (value + 1)] * 3 + [3, 4, 5, 6, 7]


class Block(nn.Module):
    """Modules in modules, in lists and dicts, with a buffer that the step changes."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Sequential(nn.Linear(8, 8), nn.GELU())})
        self.inner = nn.ModuleList([Block(depth - 1)] if depth else [])
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        x = self.norm(self.heads["a"](x) + self.heads["b"](x))
        for block in self.inner:
            x = block(x)
        return x


CONTEXTS: dict[str, Callable[[], Any]] = {
    "grad": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "bfloat16": lambda: torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False),
    "float16": lambda: torch.autocast("cpu", dtype=torch.float16, cache_enabled=False),
}


@pytest.mark.parametrize("outside", CONTEXTS)
@pytest.mark.parametrize("inside", CONTEXTS)
def test_nested_modules_replay_in_every_mode_entered_before_or_in_the_capture(inside: str, outside: str) -> None:
    torch.manual_seed(0)
    block, twin = Block(2), Block(2)
    twin.load_state_dict(block.state_dict())
    x = torch.randn(4, 8)
    block(x.clone())
    twin(x.clone())
    graph = emulator.CUDAGraph()
    with CONTEXTS[outside](), emulator.graph(graph), CONTEXTS[inside]():
        out = F.softmax(block(x), -1)
    assert block.calls.item() == 1
    assert torch.equal(block.norm.running_mean, twin.norm.running_mean)
    for _ in range(2):
        with torch.no_grad():
            x.copy_(torch.randn(4, 8))
        graph.replay()
        with CONTEXTS[outside](), CONTEXTS[inside]():
            expected = F.softmax(twin(x), -1)
        assert out.dtype is expected.dtype
        assert torch.equal(out, expected)
        assert torch.equal(block.norm.running_mean, twin.norm.running_mean)
    assert block.calls.item() == twin.calls.item() == 3
