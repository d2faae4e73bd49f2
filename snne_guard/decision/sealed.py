"""JSON that says what it is and shows whether anybody has changed it since."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from snne_guard.errors import InputError

__all__ = ["read_sealed", "sealed"]

_HEAD = frozenset({"kind", "format"})


def sealed(content: Mapping[str, Any], /, *, kind: str, version: int) -> str:
    """Return JSON that ``read_sealed`` takes.

    Args:
        content: What it holds, plain values by name.
        kind: What it is.
        version: Version of the format.

    Example:
        >>> text = sealed({"n": 5}, kind="toy", version=1)
        >>> read_sealed(text.encode(), kind="toy", version=1)
        {'n': 5}
        >>> read_sealed(text.replace("5", "6", 1).encode(), kind="toy", version=1)
        Traceback (most recent call last):
        ...
        snne_guard.errors.InputError: it was changed since it was written: its content
        does not have the checksum that it says
    """
    whole = {"kind": kind, "format": version, **content}
    whole["checksum"] = _checksum(whole)
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def read_sealed(raw: bytes, /, *, kind: str, version: int) -> dict[str, Any]:
    """Return the content of what ``sealed`` made.

    Args:
        raw: The bytes of the file.
        kind: What it must be.
        version: The newest format that is known.

    Raises:
        InputError: It is no JSON object, of another kind, of a newer format, or it was
            changed since it was written.
    """
    try:
        loaded = json.loads(raw, parse_constant=_no_number, parse_float=_finite)
    except ValueError as error:
        msg = f"it is no JSON, perhaps cut off ({error})"
        raise InputError(msg) from error
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise InputError(msg) from error
    whole = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}
    if whole.get("kind") != kind:
        msg = f"expected a file of kind {kind!r}, got {whole.get('kind')!r}"
        raise InputError(msg)
    given = whole.get("format")
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        msg = f"expected the number of its format, got {given!r}"
        raise InputError(msg)
    if given > version:
        msg = (
            f"it has format {given}, and this version of snne-guard knows no newer one "
            f"than {version}; upgrade snne-guard"
        )
        raise InputError(msg)
    if whole.pop("checksum", None) != _checksum(whole):
        msg = (
            "it was changed since it was written: its content does not have the "
            "checksum that it says"
        )
        raise InputError(msg)
    return {name: value for name, value in whole.items() if name not in _HEAD}


def _no_number(name: str) -> NoReturn:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(
        content,
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
