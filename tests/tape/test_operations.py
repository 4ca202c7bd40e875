"""A replay equals eager, bit for bit, for what steps are made of: views, in-place work, scatter, several outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_leaves

from onelaunch import emulator

Step = Callable[[Tensor, Tensor, Tensor], Any]


def in_place(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    z = x * 2
    z.add_(y).relu_()
    z[0] = 1.0
    return z


def views(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    z = (x + y).t()[::2, 1:]
    z.mul_(3)
    return z.reshape(-1) + z.flip(0).flatten()


def strided_write(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    state[:, 1::2] = x[:, 1::2]
    return state.sum(0)


def index_put(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    state.index_put_((y[0].long() % 4,), x[0], accumulate=True)
    state.scatter_(1, (x[:, :2].abs().long() % 6), 7.0)
    return state + 1


def across_dtypes(x: Tensor, y: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    half = torch.empty(4, 6, dtype=torch.float16)
    half.copy_(x)
    state.copy_(half)
    return half, x.to(torch.int32).double()


def out_arguments(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    torch.add(x, y, out=state)
    return torch.matmul(state, y.t())


def many_outputs(x: Tensor, y: Tensor, state: Tensor) -> dict[str, Any]:
    values, indices = x.topk(2)
    return {"top": (values, indices), "parts": list((x + y).split(2, dim=1)), "norm": F.layer_norm(x, (6,))}


def aliases(x: Tensor, y: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    z = x + y
    return z, z[1], state.view(-1)


def attention(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    q, k, v = (t.reshape(1, 2, 4, 3) for t in (x, y, x - y))
    mask = torch.arange(4)[None, :] <= torch.arange(4)[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def masked_fill(x: Tensor, y: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    low = x.to(torch.bfloat16)
    return (
        x.t().masked_fill(y.t() > 0, -torch.inf),
        x.masked_fill(y[0] > 0, 0.1),  # a mask that is repeated
        state[:1].masked_fill(y > 0, torch.inf),  # a tensor that is repeated
        low.masked_fill(y > 0, 1 / 3),
        x.int().masked_fill(y > 0, 3),
        x.masked_fill(y[0, 0] > 0, 2),
    )


def batch_norm(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    return F.batch_norm(x, state[0], state[1], training=True)  # updates the two rows, which its declaration hides


def qr(x: Tensor, y: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.linalg.qr(x))


def classes(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    return F.one_hot(x.abs().long().clamp(max=4), num_classes=5) * y.unsqueeze(-1)


def nothing(x: Tensor, y: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    return x[:0] * 2, torch.cat([x[:0], y])


def scalars(x: Tensor, y: Tensor, state: Tensor) -> Tensor:
    return torch.where(x > 0, x * 2 - 1, y / 3).clamp(-1, 1).pow(2).mean() + state.max()


STEPS: list[Step] = [
    in_place,
    views,
    strided_write,
    index_put,
    across_dtypes,
    out_arguments,
    many_outputs,
    aliases,
    attention,
    masked_fill,
    batch_norm,
    qr,
    classes,
    nothing,
    scalars,
]


@pytest.mark.parametrize("executor", ["python", "script", "native"])
@pytest.mark.parametrize("inference", [False, True], ids=["no_grad", "inference_mode"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_replay_equals_eager_on_values_that_the_capture_never_saw(
    step: Step, inference: bool, executor: str, play_with: Callable[[str], None]
) -> None:
    play_with(executor)
    generator = torch.Generator().manual_seed(0)
    x, y, state = (torch.randn(4, 6, generator=generator) for _ in range(3))
    context = torch.inference_mode if inference else torch.no_grad
    with context():
        step(x.clone(), y.clone(), state.clone())  # warm-up
    before = [t.clone() for t in (x, y, state)]
    graph = emulator.CUDAGraph()
    with emulator.graph(graph), context():
        outputs = step(x, y, state)
    assert all(torch.equal(now, then) for now, then in zip((x, y, state), before, strict=True))
    twin = state.clone()
    for _ in range(3):
        for tensor in (x, y):
            tensor.copy_(torch.randn(4, 6, generator=generator))
        with context():
            expected = step(x.clone(), y.clone(), twin)
        graph.replay()
        found = tree_leaves(outputs)
        assert len(found) == len(tree_leaves(expected))
        for a, b in zip(found, tree_leaves(expected), strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
        assert torch.equal(state, twin)


def test_memory_from_outside_is_not_taken_for_pool_memory_that_is_gone() -> None:
    # Tensors that die and are born in turn get each other's addresses: that of the object, and that of the memory.
    x = torch.ones(4)
    graph = emulator.CUDAGraph()
    with emulator.graph(graph), torch.no_grad():
        sums = []
        for number in range(20):
            doubled = x * 2
            del doubled
            constant = torch.tensor(float(number))
            reused = x * 3
            sums.append(reused + constant)
            del constant, reused
    graph.replay()
    assert [float(total[0]) for total in sums] == [3.0 + number for number in range(20)]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_a_decode_step_replays_without_running_the_model(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from onelaunch import LLM, SamplingParams

    params = SamplingParams(max_tokens=12, ignore_eos=True)
    with LLM(f"random:{family}", device="cpu", max_seq_len_override=64) as eager:
        expected = eager.generate([[1, 2, 3], [4]], params)
    with LLM(f"random:{family}", device="cpu", cuda_graph_bs=[2], max_running_req=2, max_seq_len_override=64) as llm:
        model = type(llm.engine.model)
        forward = model.forward

        def only_prefills(self: Any, ids: Tensor, positions: Tensor, context: Any) -> Tensor:
            assert context.batch.is_prefill
            return forward(self, ids, positions, context)

        monkeypatch.setattr(model, "forward", only_prefills)
        assert llm.generate([[1, 2, 3], [4]], params) == expected
        assert llm.engine.runner.stats.replays == 11
