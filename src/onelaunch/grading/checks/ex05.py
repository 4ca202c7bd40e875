"""Exercise 5, the metadata hooks: what an attention backend makes once, hands to a capture, fills before a replay."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from onelaunch.engine.core import Batch

exercise = Exercise("ex05", "The metadata hooks", seconds=90.0, heavy=True)

LISTS = ([4, 2, 1], [1, 2, 4, 8], [3], [2, 16, 1])
SIZES = ((4, 4), (3, 4), (2, 2), (1, 1), (1, 4))  # requests, and rows with padding
FIELDS = ("page_table", "seq_lens")
HOOKS = ("init_capture_graph", "prepare_for_capture", "prepare_for_replay")


def made(trial: Trial, bs_list: list[int]) -> tuple[str, Any, Any]:
    """Ask init_capture_graph on a new backend: the call, the backend, and what it calls fixed."""
    from onelaunch.grading import small

    backend: Any = small.context().attn_backend
    call = f"init_capture_graph(backend, {bs_list})"
    with trial.running(call):
        trial.answer("init_capture_graph")(backend, list(bs_list))
    fixed = getattr(backend, "fixed", None)
    if not isinstance(fixed, backend.metadata):
        wanted = f"a {backend.metadata.__name__}"
        raise Wrong(f"{call}, then backend.fixed", wanted, show(fixed), "Make it with backend.metadata(...).")
    return call, backend, fixed


def some(trial: Trial, size: int, padded_size: int) -> tuple[Any, Batch]:
    """A backend with buffers for 4 rows that were used before, and a batch with its metadata."""
    from onelaunch.grading import small

    backend: Any = small.context().attn_backend
    backend.init_capture_graph([1, 2, 4])
    for value in (backend.fixed.page_table, backend.fixed.seq_lens):
        value.copy_(value + trial.rng.randint(50, 99))
    return backend, small.decode_batch(trial.rng, size, padded_size)


def named(function: str, size: int, padded_size: int) -> str:
    """The call as the learner knows it."""
    padded = f", padded to {padded_size}" if padded_size > size else ""
    return f"{function}(backend with buffers of 4 rows, batch of {size}{padded})"


@exercise.check(
    "init_capture_graph: buffers for the largest size, in the types of the page table and the lengths",
    hints=(
        "One set of buffers serves all sizes. The list may be in any order.",
        "A row of the page table is as wide as the engine's own table: backend.context.page_table.table.shape[1].",
        "max(bs_list) rows; page_table [rows, max_pages] int32, seq_lens [rows] int32, last_indices None.",
    ),
)
def shapes(trial: Trial) -> None:
    """Shapes and types of what was made."""
    from onelaunch.grading import small

    for bs_list in LISTS:
        call, _, fixed = made(trial, bs_list)
        right = {"page_table": [max(bs_list), small.MAX_PAGES], "seq_lens": [max(bs_list)]}
        for name, shape in right.items():
            with trial.running(f"{call}, then backend.fixed.{name}"):
                tensor = getattr(fixed, name)
                got = f"{list(tensor.shape)} of {tensor.dtype}"
            trial.equal(got, f"{shape} of torch.int32", call=f"{call}, then backend.fixed.{name}")
        trial.equal(fixed.last_indices, None, call=f"{call}, then backend.fixed.last_indices")


@exercise.check(
    "init_capture_graph: every row starts as a dummy",
    hints=(
        "The warm-up and the capture run on these values. Whose pages may they touch?",
        "A dummy has one token, and it lies in the dummy's page.",
        "torch.full(shape, dummy_page, dtype=torch.int32), and ones for the lengths.",
    ),
)
def dummies(trial: Trial) -> None:
    """What the buffers hold at first."""
    import torch

    from onelaunch.grading import small

    for bs_list in LISTS:
        call, _, fixed = made(trial, bs_list)
        table = torch.full((max(bs_list), small.MAX_PAGES), small.PAGES, dtype=torch.int32)
        hint = "Page 0 belongs to a request. The dummy's page is backend.context.page_table.dummy_page."
        trial.equal(fixed.page_table, table, call=f"{call}, then backend.fixed.page_table", hint=hint)
        hint = "A softmax over no token at all is NaN, and a dummy has one token."
        ones = torch.ones(max(bs_list), dtype=torch.int32)
        trial.equal(fixed.seq_lens, ones, call=f"{call}, then backend.fixed.seq_lens", hint=hint)


@exercise.check(
    "prepare_for_capture: the batch reads the fixed buffers' first rows",
    hints=(
        "The graph will hold the addresses that batch.attn_metadata has now.",
        "A graph of 2 rows reads the first two rows of the buffers: slices, which are views.",
        "backend.metadata(fixed.page_table[rows], fixed.seq_lens[rows], None), with rows = slice(batch.padded_size).",
    ),
)
def views(trial: Trial) -> None:
    """The metadata is a view of the buffers, as long as the padded batch."""
    from onelaunch.grading import small

    for size, padded_size in SIZES:
        backend, batch = some(trial, size, padded_size)
        del batch.attn_metadata
        call = f"{named('prepare_for_capture', size, padded_size)}, then batch.attn_metadata"
        fixed = {name: (getattr(backend.fixed, name), getattr(backend.fixed, name).clone()) for name in FIELDS}
        with trial.running(call.split(", then")[0]):
            trial.answer("prepare_for_capture")(backend, batch)
        got = getattr(batch, "attn_metadata", None)
        if not isinstance(got, backend.metadata):
            hint = "forward asks for the metadata of its own backend: backend.metadata."
            raise Wrong(call, f"a {backend.metadata.__name__}", show(got), hint)
        for name, (whole, values) in fixed.items():
            trial.equal(getattr(got, name), values[:padded_size], call=f"{call}.{name}")
            if getattr(backend.fixed, name) is not whole or not whole.equal(values):
                raise Wrong(call, f"a fixed.{name} that stays as it is", "another one, or other values")
            if not small.is_view(getattr(got, name), whole):
                hint = "A replay reads the address that was recorded. Nobody will ever write to this copy."
                raise Wrong(f"{call}.{name}", f"the memory of fixed.{name}", "a copy of it, at another address", hint)
        trial.equal(got.last_indices, None, call=f"{call}.last_indices")


@exercise.check(
    "prepare_for_replay: pages and lengths of all rows arrive where the graph reads",
    hints=(
        "Lengths grow at every step, a page comes every sixteen tokens, and dummies are rows too.",
        "Write into the memory of backend.fixed. Giving it a new metadata changes what Python sees, not the graph.",
        "backend.fixed.page_table[rows].copy_(batch.attn_metadata.page_table), and the same for seq_lens.",
    ),
)
def arrives(trial: Trial) -> None:
    """The recorded memory has the batch's values, and the batch still its own."""
    for size, padded_size in SIZES:
        backend, batch = some(trial, size, padded_size)
        metadata = batch.attn_metadata
        right = {name: getattr(metadata, name).clone() for name in FIELDS}
        recorded = {name: getattr(backend.fixed, name) for name in FIELDS}
        addresses = {name: tensor.data_ptr() for name, tensor in recorded.items()}
        call = named("prepare_for_replay", size, padded_size)
        with trial.running(call):
            trial.answer("prepare_for_replay")(backend, batch)
        for name, values in right.items():
            memory = f"{call}, then the memory that was recorded as {name}"
            if recorded[name].data_ptr() != addresses[name] or getattr(backend.fixed, name) is not recorded[name]:
                raise Wrong(memory, "where it was, with new values", "another tensor, or other memory")
            trial.equal(recorded[name][:padded_size], values, call=memory)
            if batch.attn_metadata is not metadata or not getattr(metadata, name).equal(values):
                raise Wrong(call, "a batch that stays as it is", f"other metadata in it ({name})")


@exercise.check(
    "in the engine: SmolLM2 writes what Hugging Face's writes",
    hints=(
        "One of the three requests gets its second page while it is answered.",
        "Are there steps at which your hook does not copy something? Which of the two can you be sure not to change?",
        "No condition, no cache: both copies at each call.",
    ),
)
def in_the_engine(trial: Trial) -> None:
    """Three requests, in a graph of four rows; one of them crosses a page."""
    from onelaunch.grading import engines

    hooks = {name: trial.answer(name) for name in HOOKS}

    def plugged() -> AbstractContextManager[Any]:
        return engines.with_methods("onelaunch.attention.base.PagedBackend", **hooks)

    engines.expect_text(trial, "the engine with your three hooks", plugged, engines.replayed)
