"""GPUs as data sheets: what a kernel's time is computed from. Every field says where its number is from.

Matrix rates are dense ones, with float32 accumulation. They are what the vendor promises, not what a kernel reaches:
that is the ``Efficiency`` of ``onelaunch.timeline.roofline``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

Rate = Literal["fp16", "bf16", "fp32"]


@dataclass(frozen=True)
class Hardware:
    """One GPU.

    memory_gb, memory_gb_s: size and bandwidth of its memory, in 10^9 bytes. fp16_tflops, bf16_tflops: matrix products
    in 16 bits, dense, in 10^12 operations a second; ``bf16_tflops`` is None where the tensor cores don't know the type.
    fp32_tflops: everything else. sms: multiprocessors. l2_mb: second-level cache. sources: field -> where its number is
    from; a field that is not in it is yours.
    """

    name: str
    memory_gb: float
    memory_gb_s: float
    fp16_tflops: float
    bf16_tflops: float | None
    fp32_tflops: float
    sms: int
    l2_mb: float
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, (int, float)) and not value > 0:
                raise ValueError(f"{item.name} of {self.name} must be above zero, found {value!r}")

    def tflops(self, rate: Rate) -> float:
        """10^12 operations a second at this rate. Raises ValueError where the GPU has no such rate."""
        if rate == "fp16":
            return self.fp16_tflops
        if rate == "fp32":
            return self.fp32_tflops
        if rate != "bf16":
            raise ValueError(f"rate must be 'fp16', 'bf16' or 'fp32', found {rate!r}")
        if self.bf16_tflops is None:
            raise ValueError(
                f"{self.name} has no matrix products in bfloat16: price the same step with float16 instead "
                "(dtype=torch.float16)."
            )
        return self.bf16_tflops


def hardware(name: str | Hardware) -> Hardware:
    """The GPU of this name, such as ``"H100"``; upper and lower case are the same. A ``Hardware`` is returned as it is.

    Raises KeyError, with the names there are, for any other.
    """
    if isinstance(name, Hardware):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a GPU is a name or a Hardware, found {type(name).__name__}")
    for known in HARDWARE.values():
        if known.name.casefold() == name.strip().casefold():
            return known
    raise KeyError(
        f"no GPU is called {name!r} here; there are {', '.join(HARDWARE)}. For another, make a Hardware(...) from its "
        "data sheet."
    )


_FIELDS = ("memory_gb", "memory_gb_s", "fp16_tflops", "bf16_tflops", "fp32_tflops", "sms", "l2_mb")


def _gpu(name: str, *values: float | None, source: str, **other: str) -> Hardware:
    """A row of the table. ``source`` is that of every field that ``other`` doesn't name."""
    sources = {key: other.get(key, source) for key in _FIELDS}
    return Hardware(name=name, sources=sources, **dict(zip(_FIELDS, values, strict=True)))  # type: ignore[arg-type]


_QUOTED = ", as quoted by others"
_BY_HEART = "not checked against a vendor's document"
_PEGAINFER = "susun-blog.com, pegainfer part 4"
_GA102 = f"NVIDIA Ampere GA102 whitepaper{_QUOTED}"
_ADA = "NVIDIA Ada GPU architecture whitepaper"
_HOPPER = "NVIDIA H100 data sheet"
_BLACKWELL = "NVIDIA Blackwell data sheet (DGX B200)"

HARDWARE: dict[str, Hardware] = {
    gpu.name: gpu
    for gpu in (
        _gpu("T4", 16, 320, 65, None, 8.1, 40, 4, source=f"NVIDIA T4 data sheet{_QUOTED}"),
        _gpu("L4", 24, 300, 121, 121, 30.3, 58, 48, source="NVIDIA L4 data sheet", sms=_BY_HEART, l2_mb=_BY_HEART),
        _gpu("A10", 24, 600, 125, 125, 31.2, 72, 6, source="NVIDIA A10 data sheet", sms=_BY_HEART, l2_mb=_BY_HEART),
        _gpu("A100-40", 40, 1555, 312, 312, 19.5, 108, 40, source="NVIDIA A100 data sheet; Ampere whitepaper"),
        _gpu("A100-80", 80, 2039, 312, 312, 19.5, 108, 40, source="NVIDIA A100 data sheet; Ampere whitepaper"),
        _gpu("H100", 80, 3350, 989, 989, 67, 132, 50, source=f"{_HOPPER} (SXM); Hopper whitepaper"),
        _gpu("H200", 141, 4800, 989, 989, 67, 132, 50, source="NVIDIA H200 data sheet", l2_mb="50 or 60 by document"),
        _gpu(
            "B200", 180, 7700, 2250, 2250, 75, 148, 126, source=_BLACKWELL,
            memory_gb_s="between 7.7 and 8 TB/s by document", fp32_tflops="75 to 80 by document",
            sms=_BY_HEART, l2_mb=_BY_HEART,
        ),
        _gpu("RTX 3090", 24, 936, 71, 71, 35.6, 82, 6, source=_GA102, sms=_BY_HEART, l2_mb=_BY_HEART),
        _gpu("RTX 4090", 24, 1008, 165, 165, 82.6, 128, 72, source=_ADA, sms=_BY_HEART, l2_mb=_BY_HEART),
        # Those that published measurements were made on.
        _gpu("H100 PCIe", 80, 2039, 756, 756, 51, 114, 50, source=f"{_HOPPER} (PCIe)", l2_mb=_BY_HEART),
        _gpu("RTX 6000 Ada", 48, 960, 364, 364, 91.1, 142, 96, source="NVIDIA RTX 6000 Ada data sheet; " + _ADA),
        _gpu("RTX 5070 Ti", 16, 896, 88, 88, 43.9, 70, 48, source=_BY_HEART, memory_gb_s=_PEGAINFER),
        _gpu("RTX 4080 Laptop", 12, 432, 66, 66, 33, 58, 48, source=f"{_BY_HEART}; rates depend on the laptop's power"),
        _gpu("K80 (one of two)", 12, 240, 4.4, None, 4.4, 13, 1.5, source=_BY_HEART,
             fp16_tflops="has no arithmetic in float16: that of float32"),
    )
}  # fmt: skip
