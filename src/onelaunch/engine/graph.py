"""Decode steps from graphs: record a few batch sizes at the start, pad each batch to one of them, replay.

A graph is a recording with every address frozen in it. So the runner owns one set of buffers, records the step on
them, and before each replay copies the batch in. What is not copied keeps the value of an earlier step, and nothing
says so.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from onelaunch.engine.capture import Graph, GraphPlan, make_recorder
from onelaunch.engine.core import Batch, Context, Req
from onelaunch.padding import padded_size
from onelaunch.tape import PoolHandle

if TYPE_CHECKING:
    from onelaunch.engine.checked import StepChecker
    from onelaunch.sanitizer.poison import Padding

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class GraphCaptureBuffer:
    """The fixed inputs and the fixed output of every recorded step; a batch of n uses the first n rows."""

    input_ids: Tensor  # [largest] int64
    positions: Tensor  # [largest] int64
    out_loc: Tensor  # [largest] int64
    logits: Tensor  # [largest, vocab] float32

    @classmethod
    def init(cls, bs: int, vocab_size: int, device: torch.device, dummy_slot: int) -> GraphCaptureBuffer:
        """Buffers for ``bs`` rows. Until a batch is copied in, each row is a dummy that writes to ``dummy_slot``."""
        return cls(
            input_ids=torch.zeros(bs, dtype=torch.int64, device=device),
            positions=torch.zeros(bs, dtype=torch.int64, device=device),
            out_loc=torch.full((bs,), dummy_slot, dtype=torch.int64, device=device),
            logits=torch.full((bs, vocab_size), torch.nan, dtype=torch.float32, device=device),
        )

    def set_batch(self, batch: Batch) -> None:
        """Make ``batch`` read its inputs from here, to be recorded."""
        rows = slice(batch.padded_size)
        batch.input_ids = self.input_ids[rows]
        batch.positions = self.positions[rows]
        batch.out_loc = self.out_loc[rows]

    def copy_from(self, batch: Batch) -> None:
        """Bring a new batch's inputs here, padded rows included, for the next replay."""
        rows = slice(batch.padded_size)
        self.input_ids[rows].copy_(batch.input_ids)
        self.positions[rows].copy_(batch.positions)
        self.out_loc[rows].copy_(batch.out_loc)


@dataclass
class GraphStats:
    """What the runner did so far.

    replays: decode steps that were replayed. padded_rows: dummy rows in them. eager_fallbacks: decode steps that ran
    eagerly although graphs had been asked for. steps: how often a batch of one size was replayed at another,
    ``{(size, padded_size): times}``.
    """

    replays: int = 0
    padded_rows: int = 0
    eager_fallbacks: int = 0
    steps: Counter[tuple[int, int]] = field(default_factory=Counter)


class GraphRunner:
    """Records a decode step for each size of ``graph_bs_list`` and replays the one that fits.

    plan: which sizes, and what records them. dummy_req: fills the padded rows. sanitize: check each replay first.
    graph_bytes: memory that recording took. checker: what checks, None where nothing does.
    """

    def __init__(
        self,
        plan: GraphPlan,
        *,
        model: nn.Module,
        context: Context,
        dummy_req: Req,
        vocab_size: int,
        device: torch.device,
        sanitize: bool = False,
    ) -> None:
        self.mode, self.obstacle = plan.mode, plan.obstacle
        self.graph_bs_list = list(plan.sizes)
        self.max_graph_bs = max(self.graph_bs_list, default=0)
        self.graph_map: dict[int, Graph] = {}
        self.graph_bytes = 0
        self.stats = GraphStats()
        self.model, self.context, self.dummy_req, self.device = model, context, dummy_req, device
        if self.graph_bs_list:
            self.recorder = make_recorder(self.mode, device)
            dummy_slot = dummy_req.pages[0] * context.kv_cache.page_size
            self.buffer = GraphCaptureBuffer.init(self.max_graph_bs, vocab_size, device, dummy_slot)
            self._capture_graphs()
        self.checker = self._make_checker() if sanitize else None

    def can_use_cuda_graph(self, batch: Batch) -> bool:
        """Whether ``batch`` is a decode step that a recorded size holds."""
        return batch.is_decode and batch.size <= self.max_graph_bs

    def pad_batch(self, batch: Batch) -> None:
        """Fill ``batch`` up to a recorded size with dummies. Comes first: all inputs are made for the padded rows."""
        size = padded_size(batch.size, self.graph_bs_list) if self.can_use_cuda_graph(batch) else None
        dummies = 0 if size is None else size - batch.size
        batch.padded_reqs = batch.reqs + [self.dummy_req] * dummies

    def replay(self, batch: Batch) -> Tensor:
        """Run a prepared decode step from its graph.

        Returns logits ``[batch.size, vocab]`` float32, a view of a fixed buffer: the next replay overwrites them.
        Raises FindingsError where replays are checked and this one would be wrong.
        """
        self.buffer.copy_from(batch)
        self.context.attn_backend.prepare_for_replay(batch)
        graph = self.graph_map[batch.padded_size]
        if self.checker is not None:
            self.checker.check(batch, graph.tape, self.run_step)  # type: ignore[attr-defined]  # on the emulator
        graph.replay()
        self.stats.replays += 1
        self.stats.padded_rows += batch.padded_size - batch.size
        self.stats.steps[batch.size, batch.padded_size] += 1
        return self.buffer.logits[: batch.size]

    def note_eager(self, batch: Batch) -> None:
        """Count a step that runs without a graph, if it is one that should have had one, and say so the first time."""
        if not batch.is_decode or (self.obstacle is None and not self.graph_bs_list):
            return
        self.stats.eager_fallbacks += 1
        if self.obstacle is None and self.stats.eager_fallbacks == 1:
            warnings.warn(
                f"a decode batch of {batch.size} runs eagerly: the largest recorded size is {self.max_graph_bs}. This "
                "is the first such step; runner.stats.eager_fallbacks counts them from here on. A larger "
                "cuda_graph_max_bs, or a smaller max_running_req, avoids them.",
                stacklevel=2,
            )

    def destroy_cuda_graphs(self) -> None:
        """Delete the graphs. The stats stay readable."""
        if self.graph_map:
            logger.info("graphs deleted; %s", self.stats)
        for graph in self.graph_map.values():
            graph.reset()
        self.graph_map.clear()
        if self.checker is not None:
            self.checker.forget()
        self.graph_bs_list, self.max_graph_bs = [], 0

    def capture(self, bs: int, pool: Any = None) -> Graph:
        """Warm up and record the decode step of batch size ``bs``, into ``pool``, or into a new one where None."""
        batch = Batch([self.dummy_req] * bs, "decode")
        self.context.attn_backend.prepare_for_capture(batch)
        self.buffer.set_batch(batch)

        def step() -> None:
            self.run_step(batch)

        self.recorder.warm_up(step)
        return self.recorder.record(step, pool)

    def run_step(self, batch: Batch) -> None:
        """The decode step that is recorded: the model on ``batch``, its logits into the fixed buffer."""
        with torch.inference_mode(), self.context.forward_batch(batch):
            logits = self.model(batch.input_ids, batch.positions, self.context)
            self.buffer.logits[: batch.padded_size].copy_(logits)

    def _make_checker(self) -> StepChecker:
        from onelaunch.engine.checked import StepChecker  # only where steps are checked
        from onelaunch.engine.padded import padding_of

        context = self.context

        def fixed() -> Any:
            return getattr(context.attn_backend, "fixed", None)

        def owners() -> list[Any]:
            return [self.buffer, *([] if fixed() is None else [fixed()]), context.kv_cache, self.model]

        def padding(batch: Batch, live_row: int) -> list[Padding]:
            return padding_of(batch, self.buffer, fixed(), context.kv_cache, live_row) if fixed() is not None else []

        return StepChecker(owners, padding)

    def _capture_graphs(self) -> None:
        from tqdm import tqdm  # only where something is recorded

        self.context.attn_backend.init_capture_graph(self.graph_bs_list)
        start, free = time.perf_counter(), free_memory(self.device)
        pool = None
        # Largest first: the smaller ones fit into the memory that it took.
        for bs in (progress := tqdm(self.graph_bs_list[::-1], unit="size", leave=False)):
            progress.set_description(f"recording batch size {bs}")
            graph = self.graph_map[bs] = self.capture(bs, pool)
            pool = graph.pool() if pool is None else pool
        taken = free - free_memory(self.device)
        self.graph_bytes = pool.reserved_bytes if isinstance(pool, PoolHandle) else taken
        logger.info(
            "recorded %s as %s in %.2f s; %.1f MiB of memory",
            self.graph_bs_list,
            self.mode,
            time.perf_counter() - start,
            self.graph_bytes / 2**20,
        )


def free_memory(device: torch.device) -> int:
    """Free bytes of a GPU, with what PyTorch only keeps for later given back to it first.

    0 on a CPU, where the tape's pool knows what it took and a rerun takes none.
    """
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]
