"""Exercise 4, GraphCaptureBuffer: what a capture reads, and what is copied there before each replay."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

if TYPE_CHECKING:
    from onelaunch.engine.core import Batch
    from onelaunch.engine.graph import GraphCaptureBuffer

exercise = Exercise("ex04", "GraphCaptureBuffer", seconds=90.0, heavy=True)

SIZES = ((4, 4), (3, 4), (2, 2), (1, 1))  # requests, and rows with padding


def some(trial: Trial, size: int, padded_size: int) -> tuple[GraphCaptureBuffer, Batch]:
    """Buffers for 4 rows that were used before, and a batch."""
    from onelaunch.grading import small

    return small.used_buffer(trial.rng), small.decode_batch(trial.rng, size, padded_size)


def named(function: str, size: int, padded_size: int) -> str:
    """The call as the learner knows it."""
    padded = f", padded to {padded_size}" if padded_size > size else ""
    return f"{function}(buffer of 4 rows, batch of {size}{padded})"


@exercise.check(
    "set_batch: the batch reads the buffer's first rows",
    hints=(
        "The graph will hold the address that the batch's tensors have now. Which address should that be?",
        "A slice of a tensor is a view: the same memory. A clone, or rows picked with a list, is other memory.",
        "rows = slice(batch.padded_size), then batch.positions = buffer.positions[rows], and the same for the others.",
    ),
)
def views(trial: Trial) -> None:
    """The batch's tensors are views of the buffer, as long as the padded batch; the buffer is as it was."""
    from onelaunch.grading import small

    for size, padded_size in SIZES:
        buffer, batch = some(trial, size, padded_size)
        before = {name: (getattr(buffer, name), getattr(buffer, name).tolist()) for name in small.INPUTS}
        call = named("set_batch", size, padded_size)
        with trial.running(call):
            trial.answer("set_batch")(buffer, batch)
        for name, (whole, values) in before.items():
            if getattr(buffer, name) is not whole or whole.tolist() != values:
                what = f"buffer.{name} {show(getattr(buffer, name))}"
                raise Wrong(call, f"a buffer that stays as it is: {values}", what, "Assign to the batch, not to it.")
            got = getattr(batch, name)
            trial.equal(got, whole[:padded_size].clone(), call=f"{call}, then batch.{name}")
            if not small.is_view(got, whole):
                raise Wrong(
                    f"{call}, then batch.{name}",
                    f"the memory of buffer.{name}",
                    "a copy of it, at another address",
                    "A replay reads the address that was recorded. Nobody will ever write to this copy.",
                )


def copied(trial: Trial, size: int, padded_size: int) -> None:
    """Ask copy_from; each input's first ``padded_size`` rows have to be the batch's."""
    from onelaunch.grading import small

    buffer, batch = some(trial, size, padded_size)
    right = {name: getattr(batch, name).clone() for name in small.INPUTS}
    call = named("copy_from", size, padded_size)
    with trial.running(call):
        trial.answer("copy_from")(buffer, batch)
    for name, values in right.items():
        got = getattr(buffer, name)
        with trial.running(f"{call}, then buffer.{name}[:{padded_size}]"):
            got = got[:padded_size]
        trial.equal(got, values, call=f"{call}, then buffer.{name}[:{padded_size}]")


@exercise.check(
    "copy_from: all three inputs arrive",
    hints=(
        "Count what a decode step reads of its tokens: which token, where in its text, and where its key goes.",
        "input_ids, positions and out_loc, from the batch into the buffer. What is missing keeps an old value.",
        "buffer.positions[rows].copy_(batch.positions), once for each of the three.",
    ),
)
def arrives(trial: Trial) -> None:
    """Batches of recorded sizes."""
    for size in (4, 2, 1, 4):
        copied(trial, size, size)


@exercise.check(
    "copy_from: the padded rows too",
    hints=(
        "The graph of 4 runs 4 rows, whoever is in them. The fourth writes a key somewhere.",
        "batch.size counts the requests, batch.padded_size the rows.",
        "rows = slice(batch.padded_size); the batch's tensors are as long as that.",
    ),
)
def padded_rows(trial: Trial) -> None:
    """Batches with dummies, on buffers where a larger batch was."""
    for size, padded_size in ((3, 4), (1, 2), (1, 4)):
        copied(trial, size, padded_size)


@exercise.check(
    "copy_from: the buffer stays where it is, the batch what it is",
    hints=(
        "Assigning to buffer.positions makes Python look elsewhere. The graph does not follow.",
        "Write into the tensor that is there: copy_, or an assignment to a slice of it.",
        "buffer.positions[rows] = batch.positions writes; buffer.positions = batch.positions does not.",
    ),
)
def in_place(trial: Trial) -> None:
    """The buffer's memory has the values, and the batch still its own."""
    from onelaunch.grading import small

    for size, padded_size in SIZES:
        buffer, batch = some(trial, size, padded_size)
        wholes = {name: getattr(buffer, name) for name in small.INPUTS}
        addresses = {name: whole.data_ptr() for name, whole in wholes.items()}
        own = {name: (getattr(batch, name), getattr(batch, name).clone()) for name in small.INPUTS}
        call = named("copy_from", size, padded_size)
        with trial.running(call):
            trial.answer("copy_from")(buffer, batch)
        for name, whole in wholes.items():
            now, (tensor, values) = getattr(buffer, name), own[name]
            if now is not whole or now.data_ptr() != addresses[name] or len(now) != 4:
                raise Wrong(
                    f"{call}, then buffer.{name}",
                    "the tensor that was recorded, with new values",
                    "another tensor, or other memory",
                    "A graph does not know names. It reads the address that it was recorded with.",
                )
            trial.equal(whole[:padded_size], values, call=f"{call}, then the memory that was recorded as {name}")
            if getattr(batch, name) is not tensor or not tensor.equal(values):
                what = f"batch.{name} as another tensor"
                raise Wrong(call, "a batch that stays as it is", what, "Read from the batch, write to the buffer.")


@exercise.check(
    "in the engine: SmolLM2 writes what Hugging Face's writes",
    hints=(
        "Every replay needs every input, also where the requests are those of the step before.",
        "Run the cell above, and compare from which token on the text is wrong: the first comes from the prefill.",
        "No condition, no cache: three copies, each of them at each call.",
    ),
)
def in_the_engine(trial: Trial) -> None:
    """Three requests, in a graph of four rows."""
    from onelaunch.grading import engines

    set_batch, copy_from = trial.answer("set_batch"), trial.answer("copy_from")

    def plugged() -> AbstractContextManager[Any]:
        return engines.with_methods(
            "onelaunch.engine.graph.GraphCaptureBuffer", set_batch=set_batch, copy_from=copy_from
        )

    engines.expect_text(trial, "the engine with your set_batch and copy_from", plugged, engines.replayed)
