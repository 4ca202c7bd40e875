"""``LLM``: text in, text out. It owns an engine and a scheduler and turns the one step after another.

``generate`` waits for all answers, ``stream`` hands you each piece as it is made. Underneath both are ``submit`` and
``step``, which you can call yourself to watch requests join and leave.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch

from onelaunch.engine.capture import GraphChoice, plan_graphs
from onelaunch.engine.core import Batch, FinishReason, Req, SamplingParams
from onelaunch.engine.engine import Engine, pages_that_fit, pick_device, pick_dtype
from onelaunch.engine.handle import Handle, Piece
from onelaunch.engine.kvcache import pages_for
from onelaunch.engine.prompts import Prompt, encode, is_one_prompt
from onelaunch.engine.sample import sample
from onelaunch.engine.scheduler import Scheduler
from onelaunch.errors import RequestError
from onelaunch.models.loader import load_model
from onelaunch.models.streaming import StreamDecoder

PAGE_SIZE = 16  # tokens
DEFAULT_SEQ_LEN = 2048  # tokens; longer only where max_seq_len_override asks for it


class LLM:
    """A language model that writes text on this machine.

    model: ``"smollm2-135m"`` (fetched once), ``"random:llama"``, ``"random:qwen3"``, a local folder or a hub name.
    device: ``"cuda"`` or ``"cpu"``; a GPU where there is one if None.
    dtype: float32 on a CPU, bfloat16 on a GPU that has it, else float16, if None.
    attention_backend: one of ``onelaunch.attention.BACKENDS``; "auto" takes "gather" where decode steps are recorded,
    else "torch".
    cuda_graph_bs: batch sizes whose decode step is recorded. cuda_graph_max_bs: the largest of them, if the rule of
    ``onelaunch.padding.capture_sizes`` is to choose; 0 for none.
    graph: "auto" records if sizes are given: real graphs on a GPU (not tried on one yet), the tape on a CPU. "tape"
    records kernels as a GPU would; "rerun" records nothing and runs the Python step again where it would replay; "off"
    runs every step eagerly.
    max_running_req: requests that decode together at most; more of them wait.
    num_page_override: pages of the KV cache, 16 tokens each; chosen by memory if None.
    max_seq_len_override: longest prompt and answer together, in tokens.
    sanitize: run each decode step eagerly too before it is replayed, and replay it on other padding, on the tape;
    ``generate`` and the like raise ``onelaunch.sanitizer.FindingsError``, whose ``report`` names the cause, before a
    wrong token is made.

    Raises ModelNotFoundError for a model that cannot be had, ValueError for settings that make no sense.
    """

    def __init__(
        self,
        model: str | Path = "smollm2-135m",
        *,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        attention_backend: str = "auto",
        cuda_graph_bs: Sequence[int] | None = None,
        cuda_graph_max_bs: int | None = None,
        graph: GraphChoice = "auto",
        max_running_req: int = 64,
        num_page_override: int | None = None,
        max_seq_len_override: int | None = None,
        sanitize: bool = False,
    ) -> None:
        self.device = pick_device(device)
        self.dtype = pick_dtype(self.device) if dtype is None else dtype
        for name, value in (
            ("max_running_req", max_running_req),
            ("num_page_override", num_page_override),
            ("max_seq_len_override", max_seq_len_override),
        ):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1; found {value}.")
        plan = plan_graphs(
            graph,
            self.device,
            attention_backend=attention_backend,
            cuda_graph_bs=cuda_graph_bs,
            cuda_graph_max_bs=cuda_graph_max_bs,
            max_running_req=max_running_req,
        )
        if sanitize and plan.mode != "tape":
            raise ValueError(
                f"sanitize=True checks decode steps that are replayed from the tape, and here graph is {plan.mode!r}"
                + (f" ({plan.obstacle})" if plan.obstacle else "")
                + ". Give cuda_graph_max_bs or cuda_graph_bs, on a CPU, and leave graph at 'auto'."
            )
        loaded = load_model(
            model, device=self.device, dtype=self.dtype, max_seq_len=max_seq_len_override or DEFAULT_SEQ_LEN
        )
        self.name, self.config, self.tokenizer = loaded.name, loaded.config, loaded.tokenizer
        self.max_seq_len = max_seq_len_override or min(DEFAULT_SEQ_LEN, self.config.max_position_embeddings)
        if self.max_seq_len > self.config.max_position_embeddings:
            raise ValueError(
                f"max_seq_len_override={self.max_seq_len} is beyond what {self.name} was made for "
                f"({self.config.max_position_embeddings} positions)."
            )
        most = max_running_req * pages_for(self.max_seq_len, PAGE_SIZE)
        self.num_pages = num_page_override or pages_that_fit(self.config, PAGE_SIZE, self.dtype, self.device, most)
        self.engine = Engine(
            loaded.model,
            self.config,
            device=self.device,
            dtype=self.dtype,
            graph_plan=plan,
            max_running_req=max_running_req,
            max_seq_len=self.max_seq_len,
            num_pages=self.num_pages,
            page_size=PAGE_SIZE,
            sanitize=sanitize,
        )
        self.scheduler = Scheduler(self.engine.allocator, self.engine.context.page_table, PAGE_SIZE)
        self._handles: dict[int, Handle] = {}
        self._uids = itertools.count()
        self._closed = False

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[dict[str, Any]]:
        """Answer all prompts, in their order: ``{"text", "token_ids", "finish_reason"}`` each.

        prompts: a text, a list of token ids, or a list of these. sampling_params: one for all, or one each.

        A request that cannot be run does not take the others down: its entry has ``finish_reason`` ``"error"`` and
        says why under ``"error"``, and a warning counts such entries. Where none can be run, RequestError is raised.
        """
        handles = self._submit_all(prompts, sampling_params)
        refused = [handle for handle in handles if handle.error is not None]
        if refused and len(refused) == len(handles):
            raise RequestError("\n".join(f"prompt {handle.index}: {handle.error}" for handle in refused))
        if refused:
            warnings.warn(
                f"{len(refused)} of {len(handles)} requests were refused; "
                f"the first is prompt {refused[0].index}: {refused[0].error}",
                stacklevel=2,
            )
        try:
            while any(handle.finish_reason is None for handle in handles):
                self.step()
        finally:
            self._drop(handles)
        return [handle.result() for handle in handles]

    def stream(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> Iterator[Piece]:
        """Like ``generate``, but yields every piece as soon as it is there; ``piece.index`` says whose it is.

        A request that cannot be run yields one piece with ``finish_reason`` ``"error"``. Leaving the loop early ends
        the requests.
        """
        handles = self._submit_all(prompts, sampling_params)
        for handle in handles:
            if handle.error is not None:
                handle.pieces.append(Piece(handle.index, "", None, "error", handle.error))
        try:
            while True:
                for handle in handles:
                    while handle.pieces:
                        yield handle.pieces.popleft()
                if all(handle.finish_reason is not None for handle in handles):
                    return
                self.step()
        finally:
            self._drop(handles)

    def submit(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *, index: int = 0) -> Handle:
        """Queue one request; it runs as you call ``step``. Raises RequestError if it cannot be run."""
        if self._closed:
            raise RuntimeError("this LLM was shut down: make a new one.")
        params = SamplingParams() if sampling_params is None else sampling_params
        params.validate()
        token_ids = encode(prompt, self.tokenizer, self.name, self.config.vocab_size)
        if len(token_ids) >= self.max_seq_len:
            raise RequestError(
                f"the prompt has {len(token_ids)} tokens, and prompt and answer together may have {self.max_seq_len}. "
                "Shorten it, or make the LLM with a larger max_seq_len_override."
            )
        req = Req(
            uid=next(self._uids),
            input_ids=token_ids,
            max_device_len=min(len(token_ids) + params.max_tokens, self.max_seq_len),
            sampling_params=params,
        )
        if self.scheduler.max_pages(req) > self.num_pages:
            raise RequestError(
                f"{len(token_ids)} prompt tokens and up to {req.remain_len} new ones need "
                f"{self.scheduler.max_pages(req)} pages of {PAGE_SIZE} tokens, and the KV cache has {self.num_pages}. "
                "Lower max_tokens, or make the LLM with a larger num_page_override."
            )
        decoder = StreamDecoder(self.tokenizer, stop=params.stop_strings) if self.tokenizer is not None else None
        if decoder is None and params.stop_strings:
            raise RequestError(f"{self.name} brings no tokenizer, so stop strings cannot be found.")
        handle = Handle(index, req, decoder)
        self._handles[req.uid] = handle
        self.scheduler.add(req)
        return handle

    def step(self) -> Batch | None:
        """Run one prefill or decode step; returns its batch, or None where there is nothing to do."""
        batch = self.scheduler.next_batch()
        if batch is None:
            return None
        try:
            tokens = sample(self.engine.forward(batch), batch.reqs)
        except BaseException:
            # Half a step leaves these requests in no state to go on from; the engine itself stays usable.
            for req in batch.reqs:
                self._finish(self._handles[req.uid], "abort")
            raise
        for req, token in zip(batch.reqs, tokens, strict=True):
            handle = self._handles[req.uid]
            reason = handle.take(token, self.config.eos_token_ids)
            if reason is not None:
                self._finish(handle, reason)
        return batch

    def shutdown(self) -> None:
        """Give the model's memory back. Requests still running end with ``finish_reason`` ``"abort"``."""
        if self._closed:
            return
        self._drop(list(self._handles.values()))
        self._closed = True
        self.engine.shutdown()
        del self.engine, self.scheduler
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"LLM({self.name!r}, device={str(self.device)!r}, dtype={dtype}, num_pages={self.num_pages})"

    def _submit_all(
        self, prompts: Prompt | Sequence[Prompt], sampling_params: SamplingParams | Sequence[SamplingParams] | None
    ) -> list[Handle]:
        if self._closed:
            raise RuntimeError("this LLM was shut down: make a new one.")
        many = cast("list[Prompt]", [prompts] if is_one_prompt(prompts) else list(prompts))
        each: list[SamplingParams | None]
        if sampling_params is None or isinstance(sampling_params, SamplingParams):
            each = [sampling_params] * len(many)
        else:
            each = list(sampling_params)
        if len(each) != len(many):
            raise ValueError(
                f"{len(many)} prompts came with {len(each)} sampling_params: give one for all or one each."
            )
        handles = []
        for index, (prompt, params) in enumerate(zip(many, each, strict=True)):
            try:
                handles.append(self.submit(prompt, params, index=index))
            except RequestError as error:
                handles.append(Handle(index, None, None, finish_reason="error", error=str(error)))
        return handles

    def _finish(self, handle: Handle, reason: FinishReason) -> None:
        if handle.finish_reason is None and handle.req is not None:
            handle.finish_reason = reason
            self.scheduler.finish(handle.req, reason)
            del self._handles[handle.req.uid]

    def _drop(self, handles: list[Handle]) -> None:
        for handle in handles:
            self._finish(handle, "abort")
