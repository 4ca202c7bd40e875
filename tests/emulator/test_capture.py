"""The emulated graph API: the same lines as on a GPU, the same numbers as eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from onelaunch import emulator
from onelaunch.tape import CaptureError


def warm_graph(step, **arguments):
    step()
    g = emulator.CUDAGraph()
    with emulator.graph(g, **arguments):
        out = step()
    return g, out


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_a_replay_is_bitwise_eager_on_new_inputs(mode):
    model, x = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4)), torch.randn(3, 8)
    with mode():
        g, out = warm_graph(lambda: {"p": model(x).softmax(-1), "i": model(x).argmax(-1)})
        for _ in range(3):
            with torch.no_grad():
                x.copy_(torch.randn(3, 8))
            g.replay()
            expected = model(x)
            assert torch.equal(out["p"], expected.softmax(-1))
            assert torch.equal(out["i"], expected.argmax(-1))


def test_a_capture_changes_nothing_outside_and_its_outputs_are_garbage():
    cache, rows, x = torch.zeros(4, 2), torch.tensor([1, 3]), torch.ones(2, 2)

    def step():
        cache.index_copy_(0, rows, x)
        cache.add_(1)
        return cache * 2, rows + 1

    g = emulator.CUDAGraph()
    with emulator.graph(g):
        doubled, following = step()
    assert torch.equal(cache, torch.zeros(4, 2))
    assert doubled.isnan().all()
    assert (following < 0).all()
    g.replay()
    assert torch.equal(cache, torch.tensor([[1.0, 1], [2, 2], [1, 1], [2, 2]]))
    assert torch.equal(doubled, cache * 2)
    assert following.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("rule", "step"),
    [
        ("host-sync", lambda x: x.sum().item()),
        ("host-sync", lambda x: bool(x.any())),
        ("host-copy", lambda x: x.tolist()),
        ("host-copy", lambda x: x.cpu()),
        ("host-data", lambda x: x + torch.tensor([1.0, 2.0])),
        ("host-data", lambda x: x + torch.tensor(1.0, device=x.device)),
        ("library-sync", lambda x: torch.histc(x, 4)),
        ("dynamic-shape", lambda x: x.nonzero()),
        ("dynamic-shape", lambda x: x[x > 0]),
        ("unregistered-rng", lambda x: torch.rand(2, generator=torch.Generator())),
        ("synchronize", lambda x: emulator.synchronize()),
    ],
)
def test_a_refused_capture_says_why_and_leaves_everything_as_it_was(rule, step):
    x = torch.tensor([1.0, -1.0])

    def whole():
        x.add_(1)
        return step(x)

    with pytest.raises(CaptureError) as caught, emulator.graph(emulator.CUDAGraph()):
        whole()
    assert caught.value.rule == rule
    assert caught.value.cuda_error
    assert caught.value.where.file == __file__
    assert torch.equal(x, torch.tensor([1.0, -1.0]))
    assert not emulator.is_current_stream_capturing()
    g, out = warm_graph(lambda: x * 2)
    g.replay()
    assert torch.equal(out, x * 2)


def test_random_numbers_advance_as_in_eager():
    g = emulator.CUDAGraph()
    generator = torch.Generator().manual_seed(1)
    g.register_generator_state(generator)
    with emulator.graph(g):
        out = torch.rand(4, generator=generator)
    expected = torch.Generator().manual_seed(1)
    for _ in range(3):
        g.replay()
        assert torch.equal(out, torch.rand(4, generator=expected))


def test_graphs_that_share_a_pool_overwrite_each_other():
    x = torch.ones(64)
    first, _ = warm_graph(lambda: (x + 1) * 2)
    second, kept = warm_graph(lambda: x + 5, pool=first.pool())
    second.replay()
    assert torch.equal(kept, x + 5)
    first.replay()
    assert not torch.equal(kept, x + 5)


def test_a_side_stream_must_be_joined():
    x, side = torch.ones(4), emulator.Stream()

    def step(join):
        origin = emulator.current_stream()
        side.wait_stream(origin)
        with emulator.stream(side):
            y = x + 1
        if join:
            origin.wait_stream(side)
        return y

    with pytest.raises(CaptureError, match="unjoined"), emulator.graph(emulator.CUDAGraph()):
        step(False)
    g = emulator.CUDAGraph()
    with emulator.graph(g):
        y = step(True)
    g.replay()
    assert torch.equal(y, x + 1)
