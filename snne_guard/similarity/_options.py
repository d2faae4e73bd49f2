"""Checks of options that several similarities share."""

from __future__ import annotations

from snne_guard.errors import ConfigurationError

__all__ = ["check_whole"]


def check_whole(name: str, value: object, *, least: int) -> None:
    """Check that an option is a whole number.

    Raises:
        ConfigurationError: It is none, or smaller than the least one.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} must be a whole number of at least {least}; got {value!r}"
        raise ConfigurationError(msg)
