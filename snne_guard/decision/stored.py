"""Frozen dataclasses in JSON files with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from snne_guard.errors import InputError
from snne_guard.files import first_problem, json_object, replace_file

__all__ = ["STRICT", "read_sealed", "read_stored", "write_sealed"]

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""pydantic's settings for a dataclass that is read from a file."""

_FORMAT = 1
_LARGEST = 1 << 26
"""Bytes of the largest file that is read, far above any that is written."""

_T = TypeVar("_T")


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
    with replace_file(path) as stream:
        stream.write(text.encode() + b"\n")


def read_sealed(path: str | os.PathLike[str], /, *, kind: str) -> dict[str, Any]:
    """Return the content of a file that ``write_sealed`` wrote.

    Raises:
        InputError: If it is no JSON, as a file that was cut off; is of another kind or
            a newer format; or was changed since it was written.
        OSError: If the file cannot be read.
    """
    with Path(path).open("rb") as stream:
        raw = stream.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        msg = f"the file has more than {_LARGEST} bytes"
        raise InputError(msg)
    sealed = json_object(raw)
    if sealed.get("kind") != kind:
        msg = f"expected a file of kind {kind!r}"
        raise InputError(msg)
    if sealed.get("format") != _FORMAT:
        msg = f"expected format {_FORMAT}; another version of snne-guard wrote the file"
        raise InputError(msg)
    content = sealed.get("content")
    if not isinstance(content, dict) or sealed.get("checksum") != _checksum(content):
        msg = "the file was changed or damaged after it was written (wrong checksum)"
        raise InputError(msg)
    return content


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
        return TypeAdapter(kind).validate_json(json.dumps(content))
    except ValidationError as error:
        msg = f"expected a {kind.__name__}; {first_problem(error)}"
        raise InputError(msg) from error


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
