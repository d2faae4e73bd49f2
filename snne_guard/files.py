"""Files that are written whole or not at all, and JSON that is checked when read."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from snne_guard.errors import InputError

if TYPE_CHECKING:
    from pydantic import ValidationError

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""pydantic's settings for what is read from a file."""


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Generator[IO[bytes]]:
    """Yield a stream whose bytes take the place of a file once the block succeeds."""
    target = Path(path).resolve()  # a link stays one
    partial = target.with_name(f".{target.name[:99]}.{secrets.token_hex(4)}")
    try:
        with partial.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def json_object(
    content: bytes, *, number: Callable[[str], float] | None = None
) -> dict[str, Any]:
    """Return the JSON object that some bytes are; ``number`` reads numbers and NaN.

    Raises:
        InputError: They are something else. The message quotes nothing of them.
    """
    try:
        readers = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), number)
        value = json.loads(content.decode("utf-8"), **readers)
    except UnicodeDecodeError as error:
        msg = f"expected UTF-8, but byte {error.start} is not"
        raise InputError(msg) from None
    except json.JSONDecodeError as error:
        msg = f"expected a JSON object: {error.msg} at column {error.colno}"
        raise InputError(msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        numeric = isinstance(error, ValueError)
        why = "a number is too long or not finite" if numeric else "nested too deeply"
        msg = f"expected a plain JSON object: {why}"
        raise InputError(msg) from None
    if not isinstance(value, dict):
        msg = f"expected a JSON object, got {type(value).__name__}"
        raise InputError(msg)
    return value


def first_problem(error: ValidationError) -> str:
    """Return field and message of pydantic's first problem, without the input."""
    first = error.errors(include_url=False, include_input=False, include_context=False)
    place = ".".join(map(str, first[0]["loc"])) or "the object"
    problem = first[0]["msg"].removeprefix("Value error, ")
    return f"{place}: {problem.replace('valid tuple', 'list')}"
