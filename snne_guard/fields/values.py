"""The values of fields: which are equal, and how alike the others are."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from snne_guard.similarity import content_f1
from snne_guard.types import FloatArray


class Elsewhere:
    """What a reply of another shape has in a place, and inside of it: like nothing."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def get(self, _key: object, _default: object, /) -> Elsewhere:
        """Return itself under every key."""
        return self


Key = tuple[str, Hashable]
"""The kind of a value, and what it stands for; of equal values the same."""

NULL: Key = ("null", None)
"""Of null, of a blank text, and of no value at all."""

_EXACT = frozenset({"boolean", "date", "number"})
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d.{0,30})?")
_DAY = re.compile(
    r"\d{4}-\d\d?-\d\d?|\d\d? [A-Za-z]{3,9} \d{4}|[A-Za-z]{3,9} \d\d?, \d{4}"
)
_FORMS = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y")


DEEPEST = 100
"""Levels of a value that is compared: time grows faster than they do."""


def keyed(value: Any, /, *, levels: int = DEEPEST) -> Any:  # noqa: ANN401 - JSON may be anything
    """Return a value of JSON with a ``Key`` in place of all that holds no other values.

    Raises:
        RecursionError: It is nested too deeply to be compared.

    Example:
        >>> keyed("5 January 2024") == keyed("2024-01-05"), keyed("007") == keyed(7)
        (True, False)
    """
    if isinstance(value, dict | list) and not levels:
        raise RecursionError
    if isinstance(value, dict):
        return {str(k): keyed(v, levels=levels - 1) for k, v in value.items()}
    if isinstance(value, list):
        return [keyed(each, levels=levels - 1) for each in value]
    if isinstance(value, Elsewhere):
        return value
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int | float | Decimal):
        exact = Decimal(repr(value)) if isinstance(value, float) else value
        return "number", exact if exact == exact else "NaN"  # noqa: PLR0124
    return _text_key("" if value is None else str(value).strip())


def _text_key(text: str) -> Key:
    if not text:
        return NULL  # as is written where a schema forbids null
    if text[-1].isdigit() and _NUMBER.fullmatch(text):
        return "number", Decimal(text)
    with suppress(ValueError):
        if _ISO.fullmatch(text):
            return "date", datetime.fromisoformat(text)
    for form in _FORMS if _DAY.fullmatch(text) else ():
        with suppress(ValueError):
            return "date", datetime.strptime(text, form)  # noqa: DTZ007 - a day alone
    return "text", text


def key_of(value: Any, /) -> Key:  # noqa: ANN401 - as above
    """Return the key of what ``keyed`` returned, a list or an object too."""
    if isinstance(value, dict | list):
        return "json", json.dumps(value, sort_keys=True, default=str)
    return ("elsewhere", value) if isinstance(value, Elsewhere) else value


def alike(keys: Sequence[Key], /, *, question: str | None) -> FloatArray:
    """Return the similarity of the replies' values in one field."""
    matrix: FloatArray = np.array([[float(a == b) for b in keys] for a in keys])
    texts = [place for place, (kind, _) in enumerate(keys) if kind == "text"]
    if texts:
        exact = [place for place, (kind, _) in enumerate(keys) if kind in _EXACT]
        places = [*texts, *exact]
        said = [str(keys[place][1]) for place in places]
        rows = zip(places, content_f1(said, question=question), strict=True)
        for row, found in rows:
            # Two values that are no texts are equal or not alike at all, as above.
            row_places = places if row in texts else texts
            matrix[row, row_places] = found[: len(row_places)]
    return matrix
