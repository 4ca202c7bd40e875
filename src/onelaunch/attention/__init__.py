"""Attention over the paged KV cache. Every backend keeps the contract in ``base``; the engine picks one by name."""

from __future__ import annotations

from onelaunch.attention.base import AttentionBackend, AttentionMetadata
from onelaunch.attention.gather import GatherBackend
from onelaunch.attention.torch_backend import TorchBackend

__all__ = ["BACKENDS", "AttentionBackend", "AttentionMetadata", "GatherBackend", "TorchBackend"]

BACKENDS: dict[str, type[AttentionBackend]] = {"torch": TorchBackend, "gather": GatherBackend}
