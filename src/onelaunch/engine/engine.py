"""The engine: turns a batch into device tensors, runs the model on it or replays a graph, and returns logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from onelaunch.attention import BACKENDS
from onelaunch.engine.capture import GraphPlan
from onelaunch.engine.core import Batch, Context, Req, SamplingParams
from onelaunch.engine.graph import GraphRunner
from onelaunch.engine.kvcache import KVCachePool, PageAllocator, PageTable, pages_for
from onelaunch.models.config import ModelConfig

CPU_POOL_BYTES = 1 << 30


class Engine:
    """A model with its KV cache, page table and attention backend on one device.

    num_pages: pages of the cache (a page more is made for the dummy request). graph_plan: the attention backend, and
    the batch sizes whose decode step is recorded. sanitize: check each replay against eager first.
    """

    def __init__(
        self,
        model: nn.Module,
        config: ModelConfig,
        *,
        device: torch.device,
        dtype: torch.dtype,
        graph_plan: GraphPlan,
        max_running_req: int,
        max_seq_len: int,
        num_pages: int,
        page_size: int,
        sanitize: bool = False,
    ) -> None:
        self.model, self.device, self.page_size = model, device, page_size
        kv_cache = KVCachePool(
            num_layers=config.num_hidden_layers,
            num_pages=num_pages,
            page_size=page_size,
            num_kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            dtype=dtype,
            device=device,
        )
        page_table = PageTable(max_running_req, pages_for(max_seq_len, page_size), kv_cache.dummy_page, device)
        self.allocator = PageAllocator(num_pages)
        self.context = Context(kv_cache, page_table)
        self.context.attn_backend = BACKENDS[graph_plan.attention_backend](self.context)
        self.dummy_req = Req(
            uid=-1,
            input_ids=[0],
            max_device_len=2,
            sampling_params=SamplingParams(max_tokens=1),
            table_idx=page_table.dummy_row,
            pages=[kv_cache.dummy_page],
        )
        self.runner = GraphRunner(
            graph_plan,
            model=model,
            context=self.context,
            dummy_req=self.dummy_req,
            vocab_size=config.vocab_size,
            device=device,
            sanitize=sanitize,
        )

    def prepare_batch(self, batch: Batch) -> None:
        """Put the step's inputs on the device: token ids, positions, cache slots, attention metadata."""
        self.runner.pad_batch(batch)
        token_ids: list[int] = []
        positions: list[int] = []
        out_loc: list[int] = []
        for req in batch.padded_reqs:
            new = range(req.cached_len, req.device_len)
            token_ids += req.input_ids[req.cached_len :]
            positions += new
            out_loc += [req.pages[i // self.page_size] * self.page_size + i % self.page_size for i in new]
        batch.input_ids, batch.positions, batch.out_loc = (
            torch.tensor(values, dtype=torch.int64).to(self.device, non_blocking=True)
            for values in (token_ids, positions, out_loc)
        )
        self.context.attn_backend.prepare_metadata(batch)

    def forward(self, batch: Batch) -> Tensor:
        """Run one step. Returns logits ``[batch.size, vocab]`` float32, good until the next step."""
        with torch.inference_mode():
            self.prepare_batch(batch)
            if self.runner.can_use_cuda_graph(batch):
                return self.runner.replay(batch)
            self.runner.note_eager(batch)
            with self.context.forward_batch(batch):
                logits = self.model(batch.input_ids, batch.positions, self.context)
            return logits[: batch.size]

    def shutdown(self) -> None:
        """Delete the graphs, before the memory that they point to goes."""
        self.runner.destroy_cuda_graphs()


def pages_that_fit(config: ModelConfig, page_size: int, dtype: torch.dtype, device: torch.device, most: int) -> int:
    """Pages that the KV cache can have: what 85% of a GPU's free memory holds, or 1 GiB on a CPU, and ``most`` at most.

    On a CPU, pages that no request has used take no memory.
    """
    free = torch.cuda.mem_get_info(device)[0] * 0.85 if device.type == "cuda" else CPU_POOL_BYTES
    values = 2 * config.num_hidden_layers * page_size * config.num_key_value_heads * config.head_dim
    return max(1, min(most, int(free) // (values * dtype.itemsize)))


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device asked for; where None, a GPU if there is one. Raises ValueError for a GPU that is not there."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        chosen = torch.device("meta")  # no such kind of device
    if chosen.type not in ("cpu", "cuda"):
        raise ValueError(f"device={str(device)!r} is not known: this engine runs on 'cpu' and 'cuda'.")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' was asked for, and torch finds no GPU. Use 'cpu', or see `onelaunch doctor`.")
    return chosen


def pick_dtype(device: torch.device) -> torch.dtype:
    """float32 on a CPU; on a GPU bfloat16 from compute capability 8 on, float16 before (a T4 has no bfloat16)."""
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16
