"""Errors as providers and their clients raise them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["ProviderError", "answered", "named"]


class ProviderError(Exception):
    """What a provider's client raises; takes any attributes."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("made up")
        self.__dict__.update(attributes)


def answered(status: int | None = None, **headers: str) -> ProviderError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = SimpleNamespace(status_code=status, headers=named)
    return ProviderError(response=response)


def named(name: str) -> Exception:
    """Return an error as an HTTP client raises it; we know them by their names."""
    kind: type[Exception] = type(name, (Exception,), {})
    return kind()
