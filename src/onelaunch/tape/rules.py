"""What a capture refuses: one table of operations with CUDA's own error text, the reason, and what to write instead.

A refusal is a ``CaptureError``. It names the tensor and your line, because the text that CUDA gives does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from onelaunch.tape.source import Source, name_of, user_line

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"
INVALIDATED = "CUDA error: operation failed due to a previous error during capture"
UNJOINED = "CUDA error: capturing stream has unjoined work"
HOST_COPY = (
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
    "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True."
)
NO_NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
UNCAPTURABLE = (
    "Attempting CUDA graph capture of step() for an instance of ... but param_groups' capturable is False."  # its class
)
RESEEDED = (
    "CUDAGeneratorImpl::set_current_seed can be called during stream capture only if new seed is the same as the "
    "original seed."
)
GENERATOR = "Attempt to increase offset for a CUDA generator not in capture mode."


@dataclass(frozen=True)
class Rule:
    """A reason to refuse. cuda_error: the text that a GPU gives, or None where it is this emulator that cannot."""

    name: str
    cuda_error: str | None
    why: str
    fix: str


RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "host-sync",
            NOT_PERMITTED,
            "reading device memory from the host makes it wait for the device, and during a capture nothing runs that "
            "it could wait for",
            "Keep the value on the device (torch.where, masks, index_select), or read it before the capture.",
        ),
        Rule(
            "host-copy",
            HOST_COPY,
            "a copy to ordinary host memory makes the host wait for the device",
            "Copy after the replay, from the graph's output.",
        ),
        Rule(
            "host-data",
            HOST_COPY,
            "the numbers are copied from host memory once, at capture; a replay would not see new ones, and the copy "
            "from ordinary memory makes the host wait",
            "Make the tensor before the capture and fill it with copy_() before each replay; one constant number is "
            "torch.full((), number, device=...), and one element is set on the device by x[i : i + 1] = number.",
        ),
        Rule(
            "host-numpy",
            NO_NUMPY,
            "numpy reads host memory, and the tensor is in the device's, with or without a capture",
            "Convert after the replay: output.cpu().numpy().",
        ),
        Rule(
            "dynamic-shape",
            NOT_PERMITTED,
            "the size of the result depends on the data, so the host must read it before it can go on, and a graph's "
            "sizes are fixed",
            "Use a fixed size with a mask: torch.where, masked_fill, topk, torch.where(mask, x, other) for x[mask]; to "
            "write chosen rows only, send the others to a row that nobody reads.",
        ),
        Rule(
            "library-sync",
            NOT_PERMITTED,
            "on a GPU this operation reads an error flag or a result back to the host while it runs",
            "Compute it outside of the graph, or use a variant without the check (such as torch.linalg.inv_ex).",
        ),
        Rule(
            "unregistered-rng",
            GENERATOR,
            "a graph advances only the generators it knows of; any other would give the same numbers at each replay",
            "Call graph.register_generator_state(generator) before the capture.",
        ),
        Rule(
            "reseeded-rng",
            RESEEDED,
            "seeding is work of the host, which a replay does not repeat",
            "Seed before the capture, or before a replay.",
        ),
        Rule(
            "uncapturable-optimizer",
            UNCAPTURABLE,
            "the optimizer counts its steps in host memory, which a replay does not",
            "Make it with capturable=True; on a CPU PyTorch allows that together with fused=True.",
        ),
        Rule(
            "unjoined-stream",
            UNJOINED,
            "the capture ended before work on another stream was joined back to the stream it began on",
            "Call capture_stream.wait_stream(side_stream) before the capture ends.",
        ),
        Rule(
            "synchronize",
            NOT_PERMITTED,
            "the host cannot wait for work that is being recorded and not run",
            "Synchronize before the capture or after the replay.",
        ),
        Rule(
            "isolation",
            "CUDA error: dependency created on uncaptured work in another stream",
            "a captured stream cannot wait for work that is not part of the capture",
            "Wait before the capture, or let the other stream wait for the capturing one first.",
        ),
        Rule(
            "graph-destroyed",
            NOT_PERMITTED,
            "to destroy a graph is a call about the whole device, like giving memory back, and a capture forbids those",
            "Let go of old graphs before the capture: reset(), or gc.collect() where they hang in a cycle. Keep the "
            "collector from running in it: gc.disable(), gc.freeze().",
        ),
        Rule(
            "nested-capture",
            NOT_PERMITTED,
            "a capture is under way already, and only one can be",
            "End the first capture before you begin another.",
        ),
        Rule(
            "invalidated",
            INVALIDATED,
            "an operation was refused earlier in this capture, which ends it",
            "Mend the first error; whatever was recorded is lost.",
        ),
        Rule(
            "not-emulated",
            None,
            "a GPU may be able to capture this, the emulator is not",
            "Keep it out of the captured step when you work on the emulator.",
        ),
    )
}


class CaptureError(RuntimeError):
    """A capture was refused.

    rule: name of the rule. call: what was called. tensor: the tensor it concerns, with its name in your code where it
    could be found. where: your line. cuda_error: the text that torch.cuda would give. why, fix: the reason, the remedy.
    """

    def __init__(self, rule: str, call: str, tensor: Tensor | None = None, detail: str = "") -> None:
        entry = RULES[rule]
        self.rule, self.call, self.tensor = rule, call, tensor
        self.name: str | None = name_of(tensor) if tensor is not None else None
        self.where: Source = user_line()
        self.cuda_error, self.why, self.fix = entry.cuda_error, entry.why, entry.fix
        if self.cuda_error == UNCAPTURABLE:
            self.cuda_error = UNCAPTURABLE.replace("...", call.removesuffix(".step()"))
        subject = ""
        if tensor is not None:
            shape = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
            subject = f" on '{self.name}' ({shape})" if self.name else f" on a tensor {shape}"
        text = (
            f"capture refused {call}{subject} at {self.where}: {self.why}{detail and ' (' + detail + ')'}. {self.fix}"
        )
        if self.cuda_error is not None:
            text += f"\nOn a GPU the error reads: {self.cuda_error}"
        super().__init__(text)
