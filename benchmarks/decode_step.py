"""Records a decode step of one of transformers' language models, replays it, and says what came of it.

Two copies of the model and its cache run from the same prompt: one eagerly, one from the recorded graph. Each step's
greedy tokens are the next step's input. The host prepares a step as transformers' ``generate`` does for a static cache,
masks included, and copies what it prepared into tensors that stay where they are; the graph reads those.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from onelaunch import emulator
from onelaunch.tape import CaptureError, Tape
from onelaunch.tape.source import Source

BATCH, PROMPT, STEPS, CACHE_LENGTH = 2, 5, 8, 32
_SITE = os.path.dirname(os.path.dirname(os.path.abspath(transformers.__file__))) + os.sep


# Architectures with a cache of their own, by the name under which ``forward`` takes it and returns it.
_OWN_CACHES = {
    "rwkv": "state",
    "xlnet": "mems",
    "xlstm": "cache",
    "minimax": "cache",
    "reformer": "past_buckets_states",
}


class Decoder:
    """A model, its cache, and the fixed buffers of its decode step.

    how: ``prepared`` (the host makes positions and masks) or ``alone`` (it gives ids and positions, and the step makes
    the rest from what the cache knows).
    """

    def __init__(self, model: Any, how: str) -> None:
        self.model, self.how = model, how
        self.takes = frozenset(inspect.signature(model.forward).parameters)
        self.own = _OWN_CACHES.get(model.config.model_type)
        self.caches: dict[str, Any] = {}  # by the name of forward's argument
        if self.own is None and "cache" not in self.takes:
            raise ValueError("it keeps no cache: each step runs all of the text again")
        if self.own is None:
            self.caches["cache"] = transformers.StaticCache(config=model.config, max_cache_len=CACHE_LENGTH)
        self.tokens = torch.randint(5, 100, (BATCH, PROMPT), generator=torch.Generator().manual_seed(1))
        self.inputs: dict[str, Any] = {}

    def prepare(self) -> dict[str, Any]:
        """What ``forward`` is given for the last token, or for all of the prompt before there is one."""
        length = self.tokens.shape[1]
        new = 1 if length > PROMPT else length
        positions = {"position_ids": torch.arange(length).repeat(BATCH, 1)} if "position_ids" in self.takes else {}
        if self.how == "alone":
            return {"input_ids": self.tokens[:, -new:], **{name: value[:, -new:] for name, value in positions.items()}}
        made = self.model.prepare_inputs_for_generation(
            self.tokens,
            next_sequence_length=new,
            attention_mask=torch.ones(BATCH, length, dtype=torch.long),
            is_first_iteration=length == PROMPT,
            use_cache=True,
            **positions,
            **self.caches,
        )
        made = {name: value for name, value in made.items() if name not in self.caches and name in self.takes}
        mask = made.get("attention_mask")
        if isinstance(mask, Tensor) and mask.dim() == 2 and new == 1:  # grows, which a graph's input cannot
            made["attention_mask"] = nn.functional.pad(mask, (0, CACHE_LENGTH - mask.shape[1]))
        return made

    def step(self) -> Tensor:
        """The logits of the step that the buffers hold. [batch, 1, vocabulary]"""
        given = {"use_cache": True, "use_mems": True, "return_dict": True, **self.inputs, **self.caches}
        out = self.model(**{name: value for name, value in given.items() if name in self.takes})
        if self.own is not None:
            self.carry(out[self.own])
        return out.logits

    def carry(self, returned: Any) -> None:
        """Bring a cache that ``forward`` returned to where the next step reads it. Raises ValueError if it grew."""
        assert self.own is not None
        if self.own not in self.caches:
            self.caches[self.own] = returned
        for (name, old), (_, new) in zip(nested("", self.caches[self.own]), nested("", returned), strict=True):
            if old.shape != new.shape:
                raise ValueError(f"the cache grows: {self.own}{name} was {list(old.shape)}, is {list(new.shape)}")
            if not same_memory(old, new):
                old.copy_(new)

    def start(self) -> None:
        """The prompt, and one step more: what is made at the first decode step is made before the capture."""
        with torch.no_grad():
            self.inputs = self.prepare()
            self.append(self.step())
            self.inputs = copy.deepcopy(self.prepare())
            self.append(self.step())
            self.fill(self.prepare())

    def append(self, logits: Tensor) -> None:
        """Add each sequence's most likely token."""
        self.tokens = torch.cat([self.tokens, logits[:, -1:].argmax(-1)], 1)

    def fill(self, prepared: dict[str, Any]) -> None:
        """Copy a step's inputs to where the graph reads them. Raises ValueError if a shape changed."""
        for (name, buffer), (_, value) in zip(nested("", self.inputs), nested("", prepared), strict=True):
            if buffer.shape != value.shape:
                raise ValueError(f"{name[1:]} changes its shape: {list(buffer.shape)}, then {list(value.shape)}")
            buffer.copy_(value)


def run(model: Any, how: str) -> dict[str, Any]:
    """Outcome of a capture and ``STEPS`` replays against eager: ``bitwise``, ``refused`` or ``different``."""
    graphed = Decoder(model, how)
    graphed.start()
    eager = copy.deepcopy(graphed)
    before = dict(state(graphed))
    graph = emulator.CUDAGraph()
    try:
        with emulator.graph(graph), torch.no_grad():
            logits = graphed.step()
    except CaptureError as error:
        return {"outcome": "refused", **refusal(error)}
    assert graph.tape is not None
    row: dict[str, Any] = {"outcome": "bitwise", "kernels": len(graph.tape.kernels)}
    moved = [
        f"{name} ({place(made_at(graph.tape, tensor))})"
        for name, tensor in state(graphed)
        if name in before and not same_memory(before[name], tensor)
    ]
    if moved:
        row["moved"] = moved
    for step in range(STEPS):
        graph.replay()
        with torch.no_grad():
            expected = eager.step()
        wrong = [] if torch.equal(logits, expected) and not expected.isnan().any() else ["logits"]
        mine = dict(state(graphed))
        wrong += [name for name, tensor in state(eager) if name in mine and not torch.equal(mine[name], tensor)]
        if wrong:
            row.update(outcome="different", step=step, first=wrong[:4], frozen=frozen(graph.tape, eager))
            return row
        eager.append(expected)
        if step < STEPS - 1:
            prepared = eager.prepare()  # a replay advances no counter that the cache keeps in Python
            eager.fill(prepared)
            graphed.fill(prepared)
    return {**row, "agrees": agreement(eager, expected)}


def frozen(tape: Tape, eager: Decoder) -> list[str]:
    """What the graph holds fast and a later step would have had otherwise: numbers, or the kernels themselves."""
    later = emulator.CUDAGraph()
    with emulator.graph(later), torch.no_grad():
        eager.step()
    assert later.tape is not None
    found: list[str] = []
    for mine, other in zip(tape.kernels, later.tape.kernels, strict=False):
        if mine.name != other.name:
            return [*found, f"{mine.name}, then {other.name} ({place(mine.where)})"]
        for (name, was), (_, now) in zip(mine.frozen(), other.frozen(), strict=True):
            if was != now:
                found.append(f"{name}={was}, then {now} ({place(mine.where)})")
    return list(dict.fromkeys(found))


def agreement(eager: Decoder, logits: Tensor) -> float | None:
    """Largest difference between a decode step and the same tokens at once without a cache, relative to the logits."""
    tokens = eager.tokens[:, :-1]
    positions = {"position_ids": torch.arange(tokens.shape[1]).repeat(BATCH, 1)}
    try:
        with torch.no_grad():
            whole = eager.model(
                input_ids=tokens, use_cache=False, **(positions if "position_ids" in eager.takes else {})
            ).logits
    except Exception:
        return None
    return float((whole[:, -1] - logits[:, -1]).abs().max() / whole[:, -1].abs().max())


def made_at(tape: Tape, tensor: Tensor) -> Source | None:
    """The line that wrote ``tensor`` last while the tape was recorded."""
    address = tensor.untyped_storage().data_ptr()
    for kernel in reversed(tape.kernels):
        if any(tape.buffers[ref.buffer].address == address for ref in kernel.writes):
            return kernel.where
    return None


def place(where: Source | None) -> str:
    """A line as it is found in site-packages."""
    return "unknown" if where is None else f"{where.file.removeprefix(_SITE)}:{where.line}"


def refusal(error: CaptureError) -> dict[str, Any]:
    """What a table says of a refusal: rule, call, tensor, and the line as it stands in site-packages."""
    return {
        "rule": error.rule,
        "call": error.call,
        "tensor": error.name,
        "where": place(error.where),
        "function": error.where.function,
    }


def nested(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of all tensors in nested dictionaries, lists and caches."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from nested(f"{name}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from nested(f"{name}.{at}", item)
    elif not isinstance(value, nn.Module) and any(word in type(value).__name__ for word in ("Cache", "Layer", "State")):
        yield from nested(name, vars(value))


def state(decoder: Decoder) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of everything that a step may leave behind: in the cache, and in the model itself."""
    yield from nested("", decoder.caches)
    for path, module in decoder.model.named_modules():
        plain = {k: v for k, v in vars(module).items() if k not in ("_parameters", "_modules", "_buffers", "config")}
        yield from nested(path, plain)
        for name, value in module.named_buffers(recurse=False):
            yield f"{path}.{name}", value


def same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether a graph that reads the one reads the other too."""
    return a.data_ptr() == b.data_ptr() and a.stride() == b.stride()
