"""What a capture refuses is decided as on a GPU: by the operation, and where it matters by its arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onelaunch import emulator
from onelaunch.tape import CaptureError

Call = Callable[[Tensor, Tensor], object]


def masked(x: Tensor, ids: Tensor, value: float | Tensor) -> Tensor:
    x = x * 1
    x[x > 0] = value
    return x


REFUSED: dict[str, tuple[str, Call]] = {
    "a mask set to a tensor": ("dynamic-shape", lambda x, ids: masked(x, ids, x.sum())),
    "masked_fill with a tensor": ("host-sync", lambda x, ids: x.masked_fill(x > 0, x.sum())),
    "index_fill with a tensor": ("host-sync", lambda x, ids: x.index_fill(0, ids, x.sum())),
    "linspace between tensors": ("host-sync", lambda x, ids: torch.linspace(x[0, 0], x[0, 1], 5)),
    "deviations as a tensor": ("host-sync", lambda x, ids: torch.normal(x, x.abs())),
    "a checked sorter": ("host-sync", lambda x, ids: torch.searchsorted(x[0], x[1], sorter=x[0].argsort())),
    "one_hot that counts": ("host-sync", lambda x, ids: F.one_hot(ids)),
    "isin that sorts": ("dynamic-shape", lambda x, ids: torch.isin(ids, torch.arange(100))),
    "histc without bounds": ("library-sync", lambda x, ids: torch.histc(x, 4)),
    "pinv": ("library-sync", lambda x, ids: torch.linalg.pinv(x)),
    "cholesky": ("library-sync", lambda x, ids: torch.cholesky(x @ x.t() + 9 * torch.eye(4))),
    "inv": ("host-sync", lambda x, ids: torch.linalg.inv(x)),
    "to sparse": ("dynamic-shape", lambda x, ids: x.to_sparse()),
    "a number for the device": ("host-data", lambda x, ids: x + torch.tensor(2.0, device=x.device)),
    "new_tensor": ("host-data", lambda x, ids: x + x.new_tensor(2.0)),
    "a list as an index": ("host-data", lambda x, ids: x[[0, 1]]),
}
ALLOWED: dict[str, Call] = {
    "a mask set to a number": lambda x, ids: masked(x, ids, 2.0),
    "masked_fill with a number": lambda x, ids: x.masked_fill(x > 0, 2.0),
    "masked_fill with a host tensor": lambda x, ids: x.masked_fill(x > 0, torch.tensor(2.0)),
    "a host tensor read by the host": lambda x, ids: x * torch.tensor(2.0).item(),
    "linspace between numbers": lambda x, ids: torch.linspace(0, 1, 5) * x[0, 0],
    "one_hot of a known number": lambda x, ids: F.one_hot(ids, 4),
    "isin of a few": lambda x, ids: torch.isin(ids, ids[:2]),
    "histc between bounds": lambda x, ids: torch.histc(x, 4, -3, 3),
    "an inverse that checks nothing": lambda x, ids: torch.linalg.inv_ex(x),
    "split at a host tensor": lambda x, ids: [part * 2 for part in x.tensor_split(torch.tensor(2))],
    "a filled number": lambda x, ids: x + torch.full((), 2.0, device=x.device),
    "a batched product with one matrix": lambda x, ids: torch.matmul(x.expand(3, 4, 4), x[None]),
}


def arguments(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(4, 4, generator=generator), torch.randint(4, (3,), generator=generator)


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_its_rule(name: str) -> None:
    rule, call = REFUSED[name]
    static = arguments(0)
    call(*static)
    with pytest.raises(CaptureError) as caught, emulator.graph(emulator.CUDAGraph()), torch.no_grad():
        call(*static)
    assert caught.value.rule == rule


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_where_a_gpu_does_not_wait(name: str, mode: Callable[[], torch.no_grad]) -> None:
    call, static = ALLOWED[name], arguments(0)
    graph = emulator.CUDAGraph()
    with emulator.graph(graph), mode():
        outputs = call(*static)
    for tensor, fresh in zip(static, arguments(1), strict=True):
        tensor.copy_(fresh)
    graph.replay()
    with mode():
        expected = call(*arguments(1))
    found, wanted = (list(t) if isinstance(t, (tuple, list)) else [t] for t in (outputs, expected))
    assert len(found) == len(wanted) > 0
    for a, b in zip(found, wanted, strict=True):
        assert torch.equal(a, b)


def test_a_tensor_that_is_no_number_is_refused_by_pytorch_itself() -> None:
    x, _ = arguments(0)
    graph = emulator.CUDAGraph()
    with emulator.graph(graph), torch.no_grad():
        with pytest.raises((RuntimeError, ValueError), match=r"elements|ambiguous") as caught:
            bool(x)
        y = x * 2  # nothing was read, so the capture goes on
    assert not isinstance(caught.value, CaptureError)
    graph.replay()
    assert torch.equal(y, x * 2)


def test_an_operator_that_takes_functions_is_refused_in_words_of_ours() -> None:
    x = torch.ones(3)
    cond = torch.ops.higher_order.cond
    with (
        pytest.raises(CaptureError, match=r"capture refused torch\.cond\(\)") as caught,
        emulator.graph(emulator.CUDAGraph()),
    ):
        cond(torch.tensor(True), lambda x: (x + 1,), lambda x: (x - 1,), (x,))
    assert caught.value.rule == "not-emulated"
