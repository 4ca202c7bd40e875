"""A tape from FakeTensors is that of a real capture: the same kernels, the same buffers, the same plan of memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest
import torch
import transformers
from tape_plan import plan
from test_operations import STEPS, Step
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from onelaunch import emulator
from onelaunch.tape import CaptureError, Recorder, Tape, record_shapes
from onelaunch.tape.pool import Pool
from operator_samples import first_pair, operators, seeds_from_outside


def record(step: Callable[[], Any]) -> Tape:
    """With memory, as ``record_shapes`` does it without."""
    step()
    recorder = Recorder(Pool())
    recorder.start()
    made = step()  # noqa: F841
    return recorder.stop()


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_the_operations_of_steps_give_the_same_tape(step: Step, context: Any) -> None:
    def build() -> Callable[[], Any]:
        x, y, state = torch.randn(4, 6), torch.randn(4, 6), torch.randn(4, 6)

        def run() -> Any:
            with context():
                return step(x, y, state)

        return run

    tape = record_shapes(build)
    assert tape.shapes_only
    assert plan(tape) == plan(record(build()))


def test_a_training_step_gives_the_same_tape() -> None:
    def build() -> Callable[[], Any]:
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(3, 8), torch.randn(3, 4)

        def step() -> Tensor:
            optimizer.zero_grad(set_to_none=True)
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    assert plan(record_shapes(build)) == plan(record(build()))


@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
def test_a_model_of_transformers_gives_the_same_tape(family: str) -> None:
    config = getattr(transformers, f"{family}Config")(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
    )
    config._attn_implementation = "sdpa"

    def build() -> Callable[[], Any]:
        model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
        cache = transformers.StaticCache(config, max_cache_len=16)
        ids, position = torch.zeros(2, 1, dtype=torch.long), torch.full((1,), 3)
        attend = torch.ones(2, 1, 1, 16, dtype=torch.bool)

        def step() -> Tensor:
            with torch.no_grad():
                out = model(
                    ids,
                    attention_mask=attend,
                    position_ids=position[None],
                    cache_position=position,
                    cache=cache,
                    use_cache=True,
                )
            return out.logits

        return step

    assert plan(record_shapes(build)) == plan(record(build()))


REFUSED: list[tuple[str, Callable[[Tensor], Any]]] = [
    ("host-sync", lambda x: x.sum().item()),
    ("host-sync", lambda x: bool(x.any())),
    ("host-sync", lambda x: torch.zeros(9)[: x.sum().long()]),
    ("host-copy", lambda x: x.cpu()),
    ("host-numpy", lambda x: x.numpy()),
    ("host-data", lambda x: x + torch.tensor([1.0, 2.0])),
    ("dynamic-shape", lambda x: x.nonzero()),
    ("dynamic-shape", lambda x: x[x > 0]),
    ("unregistered-rng", lambda x: torch.rand(2, generator=torch.Generator())),
    ("library-sync", lambda x: torch.linalg.svdvals(x[None])),
]


@pytest.mark.parametrize(("rule", "step"), REFUSED)
@pytest.mark.parametrize("shapes_only", [False, True], ids=["memory", "shapes"])
def test_a_step_is_refused_by_the_same_rule(rule: str, step: Callable[[Tensor], Any], shapes_only: bool) -> None:
    def whole() -> None:
        mode = FakeTensorMode() if shapes_only else torch.no_grad()
        with mode:
            x = torch.ones(2)
            with emulator.graph(emulator.CUDAGraph()):
                step(x * 2)

    with pytest.raises(CaptureError) as caught:
        whole()
    assert caught.value.rule == rule
    assert caught.value.where.file == __file__
    assert not emulator.is_current_stream_capturing()


# Neither is about the tape: FakeTensors do not mix with sparse tensors, and tensor_split reads its indices on the host.
NOT_ON_FAKE_TENSORS = {"sparse.sampled_addmm", "sparse.mm", "tensor_split"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_operator_of_pytorch_s_database_gives_the_same_tape_or_the_same_refusal() -> None:
    def tape_of(op: Any, sample: Any, shapes_only: bool) -> str:
        with FakeTensorMode() if shapes_only else nullcontext() as mode, torch.no_grad():
            recorder = Recorder(Pool())
            given = (sample.args, sample.kwargs)
            if mode is not None:
                try:
                    given = tree_map_only(Tensor, mode.from_tensor, given)
                except AssertionError:
                    return "has no fake counterpart"
            recorder.start()
            try:
                made = op(*given[0], **given[1])  # noqa: F841
            except CaptureError as error:
                recorder.stop(failed=True)
                return error.rule
            except Exception as error:  # the operator's own, on this sample
                recorder.stop(failed=True)
                return type(error).__name__
            return repr(plan(recorder.stop()))

    compared, different = 0, []
    with seeds_from_outside():
        for op in operators():
            pair = first_pair(op, torch.float32) if torch.float32 in op.dtypes else None
            if pair is not None:
                compared += 1
                if tape_of(op, pair[0], False) != tape_of(op, pair[0], True):
                    different.append(op.name)
    assert compared > 600
    assert set(different) <= NOT_ON_FAKE_TENSORS


def test_the_emulator_records_shapes_under_a_fake_mode_and_will_not_replay_them() -> None:
    g, real = emulator.CUDAGraph(), torch.ones(4)
    with FakeTensorMode():
        x = torch.empty(1 << 40, 4)  # sixteen TiB
        with emulator.graph(g):
            y = x * 2
            del y
            z = x + 1  # noqa: F841
    assert g.tape is not None
    assert [buffer.kind for buffer in g.tape.buffers] == ["intermediate", "input", "output"]
    assert g.tape.pool.peak_bytes == 1 << 44
    assert g.tape.pool.naive_bytes == 1 << 45
    for use in (g.instantiate, g.replay, lambda: g.tape.tensor(g.tape.kernels[0].reads[0])):
        with pytest.raises(RuntimeError, match=r"recorded from FakeTensors.*no memory to replay"):
            use()
    with pytest.raises(RuntimeError, match="cannot share a pool"), emulator.graph(emulator.CUDAGraph(), pool=g.pool()):
        real * 2
    assert torch.equal(real, torch.ones(4))


def test_recording_shapes_draws_no_random_numbers() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    tape = record_shapes(lambda: lambda: torch.rand(4) + torch.randn(4))
    assert [kernel.name for kernel in tape.kernels] == ["aten::rand", "aten::randn", "aten::add.Tensor"]
    assert torch.equal(torch.get_rng_state(), before)


def test_made_up_addresses_never_overlap_and_stay_with_their_memory() -> None:
    with FakeTensorMode():
        weights = [torch.empty(n) for n in (3, 1000, 1 << 20)]
        tapes = []
        for _ in range(2):
            g = emulator.CUDAGraph()
            with emulator.graph(g):
                out = sum(weight.sum() for weight in weights)  # noqa: F841
            assert g.tape is not None
            tapes.append(g.tape)
    found = [[(b.address, b.nbytes) for b in tape.buffers if b.kind == "input"] for tape in tapes]
    assert found[0] == found[1]
    assert sorted(n for _, n in found[0]) == [12, 4000, 4 << 20]
    segments = [(s.address, s.nbytes) for tape in tapes for s in tape.pool.segments]
    spans = sorted([*found[0], *segments])
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))
