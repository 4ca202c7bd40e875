"""The pool: what is reused, what never merges, whose replay overwrites whose result, why the largest goes first."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tape import ACTIONS, Program, programs
from torch import Tensor

from onelaunch import emulator
from onelaunch.tape import Pool, PoolHandle, Tape

MiB = 1 << 20


def graph_of(step: Callable[[], Any], pool: PoolHandle | None = None) -> tuple[emulator.CUDAGraph, Tape, Any]:
    g = emulator.CUDAGraph()
    with emulator.graph(g, pool=pool):
        out = step()
    assert g.tape is not None
    return g, g.tape, out


def test_a_long_chain_takes_the_memory_of_two_links() -> None:
    def chain() -> Tensor:
        y = x
        for _ in range(100):
            y = y + 1
        return y

    x = torch.zeros(1 << 16)
    _, tape, _ = graph_of(chain)
    assert tape.pool.naive_bytes == 100 * x.nbytes
    assert tape.pool.peak_bytes == 2 * x.nbytes
    assert len({buffer.address for buffer in tape.buffers if not buffer.outside}) == 2


@pytest.mark.parametrize(
    ("request_bytes", "segment_bytes"),
    [
        (1, 2 * MiB),
        (MiB, 2 * MiB),
        (MiB + 1, 20 * MiB),
        (10 * MiB - 1024, 20 * MiB),
        (10 * MiB, 10 * MiB),
        (11 * MiB, 12 * MiB),
        (32 * MiB, 32 * MiB),
    ],
)
def test_segments_have_the_sizes_of_the_caching_allocator(request_bytes: int, segment_bytes: int) -> None:
    pool = Pool()
    block, memory = pool.allocate(request_bytes)
    assert pool.reserved_bytes == segment_bytes
    assert memory.nbytes == request_bytes
    assert memory.data_ptr() == block.address


def test_free_segments_do_not_merge_and_blocks_inside_of_one_do() -> None:
    pool = Pool()
    two = [pool.allocate(12 * MiB)[1] for _ in range(2)]
    del two
    pool.allocate(24 * MiB)
    assert [segment.nbytes // MiB for segment in pool.segments] == [12, 12, 24]
    pool = Pool()
    parts = [pool.allocate(512 * 1024)[1] for _ in range(4)]
    addresses = [part.data_ptr() for part in parts]
    assert addresses == [addresses[0] + i * 512 * 1024 for i in range(4)]
    del parts[1:3]
    gc.collect()
    whole, _ = pool.allocate(MiB)
    assert whole.address == addresses[1]
    assert pool.reserved_bytes == 2 * MiB


def test_the_tightest_free_block_is_taken() -> None:
    pool = Pool()
    kept = [pool.allocate(nbytes)[1] for nbytes in (4096, 512, 1024, 512, 2048, 512)]
    loose, tight = kept[0].data_ptr(), kept[2].data_ptr()
    kept[0] = kept[2] = torch.empty(0)
    assert pool.allocate(1000)[0].address == tight
    assert pool.allocate(3000)[0].address == loose


def test_streams_share_no_blocks() -> None:
    pool = Pool()
    first = pool.allocate(512, stream=1)[0].address
    assert pool.allocate(512, stream=1)[0].address == first
    assert pool.allocate(512, stream=2)[0].segment is not pool.segments[0]
    assert pool.reserved_bytes == 4 * MiB


def test_memory_lives_as_long_as_a_tensor_on_it_and_no_longer() -> None:
    x = torch.ones(64)
    g, tape, out = graph_of(lambda: x * 2)
    g.replay()
    segment = weakref.ref(tape.pool.segments[0])
    view = out[3:5]
    del g, tape, out
    gc.collect()
    assert view.tolist() == [2.0, 2.0]
    del view
    gc.collect()
    assert segment() is None


def mlp(size: int) -> Callable[[], Tensor]:
    """A step whose largest tensor is [size, 8192] float32: 32 KiB a row."""
    x, up, down = torch.ones(size, 64), torch.ones(64, 8192), torch.ones(8192, 64)

    def step() -> Tensor:
        y = x
        for _ in range(2):
            hidden = F.relu(y @ up)
            y = y + (hidden * hidden).sqrt() @ down
        return y

    return step


def growth(sizes: Sequence[int]) -> list[int]:
    """Bytes by which a shared pool grew at each capture."""
    pool, grown, kept = emulator.graph_pool_handle(), [], []
    for size in sizes:
        before = pool.reserved_bytes
        kept.append(graph_of(mlp(size), pool))
        grown.append(pool.reserved_bytes - before)
    return grown


def test_largest_first_costs_the_largest_and_smallest_first_more() -> None:
    sizes = [8, 64, 256, 512]  # three tensors live at once, of 256 KiB, 2, 8 and 16 MiB each, and small ones
    (alone,) = growth([512])
    down, up = growth(sizes[::-1]), growth(sizes)
    assert [grown // MiB for grown in down] == [50, 0, 0, 0]
    assert down[0] == alone
    # 3 * 2 MiB fill one segment of 20, 3 * 8 a second one, and of 3 * 16 each of these can take one.
    assert [grown // MiB for grown in up] == [2, 20, 20, 16]


@settings(max_examples=50, deadline=None)
@given(st.lists(programs, min_size=2, max_size=4))
def test_what_a_replay_overwrites_is_what_its_tape_says(several: list[Program]) -> None:
    """Each output is filled with a pattern, each other graph is replayed: changed is what was predicted, no more."""
    pool, graphs = emulator.graph_pool_handle(), []
    for program in several:

        def step(program: Program = program) -> list[Tensor]:
            live = [torch.randn(4, 4) for _ in range(3)]
            made = list(live)
            for name, a, b in program:
                ACTIONS[name](made, made[a % len(made)], made[b % len(made)])
            return made

        torch.manual_seed(0)
        graphs.append(graph_of(step, pool))
    for _, kept, _outputs in graphs:
        outputs = {buffer.index: buffer for buffer in kept.buffers if buffer.kind == "output"}
        for replayed, tape, _ in graphs:
            memory = {index: whole(kept, index) for index in outputs}
            for bytes_ in memory.values():
                bytes_.fill_(0xA5)
            replayed.replay()
            changed = {index for index, bytes_ in memory.items() if (bytes_ != 0xA5).any()}
            assert changed == {buffer.index for buffer in tape.overwrites(kept)}
            if tape is kept:
                assert changed == set(outputs)


def whole(tape: Tape, index: int) -> Tensor:
    """The bytes of a buffer, as uint8."""
    buffer = tape.buffers[index]
    segment = next(s for s in tape.pool.segments if s.address <= buffer.address < s.address + s.nbytes)
    assert segment.memory is not None
    start = buffer.address - segment.address
    return segment.memory[start : start + buffer.nbytes]


def test_a_kept_output_is_overwritten_by_the_graph_that_was_recorded_after_it_was_dropped() -> None:
    x = torch.arange(8.0)
    first, first_tape, out = graph_of(lambda: x * 2)
    first.replay()
    assert torch.equal(out, x * 2)
    second, second_tape, _ = graph_of(lambda: x + 100, first.pool())
    second.replay()
    assert torch.equal(out, x * 2)  # held while the second was recorded, so the second stays away from it
    assert second_tape.overwrites(first_tape) == []
    kept = out.clone()
    del out
    third, third_tape, result = graph_of(lambda: x - 1, first.pool())
    assert [buffer.kind for buffer in third_tape.overwrites(first_tape)] == ["output"]
    assert [buffer.kind for buffer in first_tape.overwrites(third_tape)] == ["output"]
    third.replay()
    assert torch.equal(result, x - 1)
    first.replay()
    assert torch.equal(result, kept)  # the same address, and no error


def test_graphs_in_pools_of_their_own_overwrite_nothing_of_each_other() -> None:
    x = torch.ones(16)
    (_, a, _), (_, b, _) = graph_of(lambda: x + 1), graph_of(lambda: x + 2)
    assert a.overwrites(b) == b.overwrites(a) == []
