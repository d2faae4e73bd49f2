"""JSON as it comes and goes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.responses import Response

__all__ = ["json_response", "read_object", "to_bytes"]


def to_bytes(value: object) -> bytes:
    """Return a value as JSON; halves of surrogate pairs, which streams cut, survive."""
    return json.dumps(value, separators=(",", ":")).encode()


def read_object(body: bytes) -> dict[str, Any]:
    """Return the object that a request's body holds.

    Raises:
        ValueError: It holds something else.
    """
    try:
        value = json.loads(body, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        value = None
    if not isinstance(value, dict):
        msg = "expected a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - as for a body that is no JSON
    return value


def json_response(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer in JSON."""
    return Response(
        to_bytes(value), status, headers=headers, media_type="application/json"
    )


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)


def _refuse(constant: str) -> NoReturn:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)
