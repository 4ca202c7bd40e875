"""What a step costs in time: measured here, priced for a GPU that you don't have, or read from a trace.

The modules: ``costs`` (measured on this machine), ``hardware`` (data sheets), ``roofline`` (bytes and operations of
kernels of a tape), ``tapes`` (the same for deep models), ``fusion`` (the kernels of an engine that fuses), ``simulate``
(host and device side by side), ``sweeps`` (over batches and lengths), ``published`` (what others measured, beside it),
``trace`` (a profile of torch.profiler), ``chrome`` (timelines that Perfetto opens).
"""

from __future__ import annotations

# Imported here and now, because two of the names are those of their modules. None of these needs torch.
from onelaunch.timeline.hardware import HARDWARE, Hardware, hardware
from onelaunch.timeline.roofline import Efficiency, KernelCost, kernel_costs, time_us
from onelaunch.timeline.simulate import LaunchCosts, Span, Step, lay_out, simulate, speedup

__all__ = [
    "HARDWARE",
    "Efficiency",
    "Hardware",
    "KernelCost",
    "LaunchCosts",
    "Span",
    "Step",
    "hardware",
    "kernel_costs",
    "lay_out",
    "simulate",
    "speedup",
    "time_us",
]
