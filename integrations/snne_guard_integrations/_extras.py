"""Asking for an optional package: there, and new enough, or an error that helps."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from packaging.version import Version

from snne_guard import MissingExtraError

__all__ = ["required"]


def required(
    module: str, *, extra: str, at_least: str, distribution: str | None = None
) -> ModuleType:
    """Return a module of an optional package.

    Args:
        module: What to import.
        extra: The extra of snne-guard that brings it.
        at_least: The oldest version that is known to work.
        distribution: What pip calls the package, where that is not the module's first
            name.

    Raises:
        MissingExtraError: If it is not installed, or older than that.

    Example:
        >>> required("packaging", extra="otel", at_least="1").__name__
        'packaging'
        >>> required("packaging", extra="otel", at_least="1000")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        snne_guard.errors.MissingExtraError: packaging 1000 or later (found ...
    """
    name = distribution or module.partition(".")[0]
    needed = f"{name} {at_least} or later"
    try:
        found = version(name)
    except PackageNotFoundError:
        raise MissingExtraError(needed, extra=extra) from None
    if Version(found) < Version(at_least):
        needed += f" (found {found})"
        raise MissingExtraError(needed, extra=extra)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        needed += f" (no {error.name})"
        raise MissingExtraError(needed, extra=extra) from error
