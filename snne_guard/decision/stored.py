"""JSON files with a checksum, and frozen dataclasses read back from JSON."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from snne_guard.errors import InputError

__all__ = ["STRICT", "read_sealed", "read_stored", "write_sealed"]

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""pydantic's settings for a dataclass that is read from a file."""

_FORMAT = 1
_LARGEST = 1 << 26
"""Bytes of the largest file that is read, far above any that is written."""

_T = TypeVar("_T")


def read_stored(kind: type[_T], content: Mapping[str, Any], /) -> _T:
    """Return a dataclass from its fields as JSON holds them.

    Args:
        kind: A dataclass with ``__pydantic_config__ = STRICT``.
        content: Its fields.

    Raises:
        InputError: If a field is missing, unknown, of the wrong type or contradicts
            another one.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        # By way of JSON: it has no tuples, so lists are taken for them.
        return TypeAdapter(kind).validate_json(_canonical(content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or kind.__name__
        msg = f"expected a {kind.__name__}; {place}: {first['msg']}"
        raise InputError(msg) from error
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"expected the fields of a {kind.__name__} as JSON can hold them"
        raise InputError(msg) from error


def write_sealed(
    path: str | os.PathLike[str], content: Mapping[str, Any], /, *, kind: str
) -> None:
    """Write JSON with a checksum; the file appears whole or not at all.

    Args:
        path: Where to; a file that is there is replaced.
        content: What ``read_sealed`` returns.
        kind: What it is.

    Raises:
        OSError: If the file cannot be written.
    """
    sealed = {"kind": kind, "format": _FORMAT, "checksum": _checksum(content)}
    text = json.dumps(sealed | {"content": content}, indent=2, allow_nan=False)
    target = Path(path).resolve()  # a link stays one
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as stream:
            stream.write(text.encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read_sealed(path: str | os.PathLike[str], /, *, kind: str) -> dict[str, Any]:
    """Return the content of a file that ``write_sealed`` wrote.

    Raises:
        InputError: If it is no JSON, as a file that was cut off; is of another kind or
            a newer format; or was changed since it was written.
        OSError: If the file cannot be read.
    """
    with Path(path).open("rb") as stream:
        raw = stream.read(_LARGEST + 1)
    try:
        return _content(raw, kind=kind)
    except InputError as error:
        msg = f"cannot read {os.fspath(path)!r}: {error}"
        raise InputError(msg) from error


def _content(raw: bytes, *, kind: str) -> dict[str, Any]:
    from pydantic_core import from_json

    if len(raw) > _LARGEST:
        msg = f"the file has more than {_LARGEST} bytes"
        raise InputError(msg)
    try:
        loaded: object = from_json(raw, allow_inf_nan=False)
        _canonical(loaded)  # 1e999 is read as infinity, and is not JSON
    except (ValueError, RecursionError) as error:
        msg = f"the file is no JSON, perhaps cut off ({error})"
        raise InputError(msg) from error
    sealed = _as_dict(loaded)
    if sealed.get("kind") != kind:
        msg = f"expected a file of kind {kind!r}"
        raise InputError(msg)
    if sealed.get("format") != _FORMAT:
        msg = f"expected format {_FORMAT}; another version of snne-guard wrote the file"
        raise InputError(msg)
    content = _as_dict(sealed.get("content"))
    if sealed.get("checksum") != _checksum(content):
        msg = "the file was changed or damaged after it was written (wrong checksum)"
        raise InputError(msg)
    return content


def _as_dict(loaded: object) -> dict[str, Any]:
    return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}


def _canonical(content: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def _checksum(content: Mapping[str, Any]) -> str:
    return "sha256:" + hashlib.sha256(_canonical(content).encode()).hexdigest()
