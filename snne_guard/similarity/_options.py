"""Checks of options that several similarities share."""

from __future__ import annotations

import os

from snne_guard.errors import ConfigurationError

__all__ = ["check_dtype", "check_model_name", "check_whole"]

_DTYPES = ("bfloat16", "float16", "float32", "float64")


def check_whole(name: str, value: object, *, least: int) -> None:
    """Check that an option is a whole number.

    Raises:
        ConfigurationError: It is none, or smaller than the least one.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} must be a whole number of at least {least}; got {value!r}"
        raise ConfigurationError(msg)


def check_dtype(value: object) -> None:
    """Check that an option is the name of a precision.

    Raises:
        ConfigurationError: It is none.
    """
    if value not in _DTYPES:
        msg = f"dtype must be one of {_DTYPES}; got {value!r}"
        raise ConfigurationError(msg)


def check_model_name(value: object) -> None:
    """Check that an option is the name or the path of a model.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(value, str | os.PathLike) or value == "":
        msg = f"model must be a name or a path; got {value!r}"
        raise ConfigurationError(msg)
