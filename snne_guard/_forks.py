"""What begins anew in a forked process, where its parent's threads are not."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["begin_in_forks"]


class _Shared(Protocol):
    """State that threads share under a lock."""

    def begin(self) -> None:
        """Forget what the parent's threads hold, the lock included."""
        ...


_KNOWN: WeakSet[_Shared] = WeakSet()


def begin_in_forks(shared: _Shared) -> None:
    """Begin with it now, and again in every process that is forked off.

    A thread that holds a lock or a place at the moment of a fork is not there to give
    it back.

    Args:
        shared: What ``begin`` is called of; kept only as long as others keep it.
    """
    shared.begin()
    _KNOWN.add(shared)


def _begin_all() -> None:
    for shared in list(_KNOWN):
        shared.begin()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows does not fork
    os.register_at_fork(after_in_child=_begin_all)
