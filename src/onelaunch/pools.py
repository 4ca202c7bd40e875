"""The tokens of memory pools that graphs share, as ``torch.cuda`` has them."""

from __future__ import annotations

import weakref

from onelaunch.tape import Pool, PoolHandle

_pools: weakref.WeakValueDictionary[tuple[int, int], Pool] = weakref.WeakValueDictionary()


def graph_pool_handle() -> PoolHandle:
    """A token for a new memory pool that graphs can share."""
    return handle_of(Pool())


def handle_of(pool: Pool) -> PoolHandle:
    """The token of a pool."""
    _pools[tuple(pool.handle)] = pool  # type: ignore[index]  # a pair of numbers, as the handle is
    return pool.handle


def pool_of(handle: tuple[int, int] | None) -> Pool:
    """The pool of a token, a new one where there is none. Raises RuntimeError for a pool that is gone."""
    if handle is None or handle == (0, 0):
        return Pool()
    pool = handle.memory if isinstance(handle, PoolHandle) else _pools.get(handle)
    if pool is None:
        raise RuntimeError(
            f"pool={handle!r} is no pool that still exists. Pass graph_pool_handle() or another graph's pool()."
        )
    return pool
