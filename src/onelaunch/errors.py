"""The errors a user can meet. Each message says what was asked, what was found and what to do."""

from __future__ import annotations


class ModelNotFoundError(RuntimeError):
    """A model that cannot be had: an unknown name, no network, a damaged or unsupported checkpoint."""


class RequestError(ValueError):
    """A request that cannot be run. The engine and all other requests go on."""
