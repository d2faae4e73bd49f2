"""The uncertainty of each field of a structured answer, and its threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from random import Random
from typing import Any

import numpy as np

from snne_guard.decision import Threshold
from snne_guard.errors import InputError
from snne_guard.fields.rows import matched
from snne_guard.fields.values import NULL, Elsewhere, alike, key_of, keyed
from snne_guard.scorers.method import ANCHORS
from snne_guard.scorers.nearest_neighbor import snne, uncertainty
from snne_guard.similarity.json_values import read_json
from snne_guard.text import without_reasoning
from snne_guard.types import Field

_HALF = 0.5


def score_fields(
    answer: Any,  # noqa: ANN401 - JSON may be anything
    samples: Sequence[Any],
    *,
    question: str | None = None,
) -> list[Field]:
    """Return the uncertainty of each field of a structured answer; calls no model.

    It is the anchored SNNE of the values that answer and samples have in the field, as
    for whole answers. Numbers, days and booleans are equal by value or not alike at
    all; texts are compared by ``content_f1``; null, a blank text and no value at all
    are the same. A sample that has another shape in a place supports no field there.

    Rows of lists of up to 200 items are compared with their best match in each sample,
    those of longer lists by position. What only samples have is a field too: a key by
    its own path, further rows together by the path of the list and ``/-``.

    Args:
        answer: A dict or list as JSON has them, a Pydantic model, or a JSON text;
            reasoning before it does not count.
        samples: The same of each sample, at least one; what is no JSON supports
            nothing.
        question: The question; its words count for little in texts.

    Returns:
        The fields in the order of the answer: every value that is no dict or list, and
        those that are empty everywhere.

    Raises:
        InputError: There are no samples, or the answer is neither a dict nor a list.

    Example:
        >>> answer = {"city": "Bern", "rows": [{"n": 1}, {"n": 2}]}
        >>> samples = [{"city": "Basel", "rows": [{"n": 2}, {"n": 1}]}] * 4
        >>> for field in score_fields(answer, samples):
        ...     print(field.path, round(field.uncertainty, 2), field.supported)
        /city 0.86 0
        /rows/0/n 0.0 4
        /rows/1/n 0.0 4
    """
    if isinstance(samples, str | dict) or not samples:
        msg = "expected a list of at least one sample"
        raise InputError(msg)
    first, *others = map(_keyed, (answer, *samples))
    if isinstance(first, Elsewhere):
        msg = "expected the answer as a dict, a list or a JSON text, not too deep"
        raise InputError(msg)
    if isinstance(first, dict) and first:
        # What shares no key has no field of the answer, such as {"error": "…"}.
        others = [
            Elsewhere() if isinstance(o, dict) and o and not o.keys() & first else o
            for o in others
        ]
    leaves = _leaves("", [first, *others])
    return [_field(path, keys, question) for path, keys in leaves]


def calibrate_fields(
    rows: Iterable[Mapping[str, Any]], *, alpha: float, delta: float = 0.1
) -> Threshold:
    """Return a threshold for fields that carries a guarantee.

    Fields of one object are right or wrong together more often than by chance, so one
    labelled field of each object is used, chosen by the object's id. The guarantee is
    about a field that is chosen in the same way: at most the share ``alpha`` of those
    with an uncertainty up to the threshold is wrong, with confidence 1 - ``delta``.

    Args:
        rows: Recordings, with as many samples as the guard will have, and with
            ``field_labels``: for the path of each field that was looked at, 1 (right)
            or 0 (wrong). Those without such labels are left out.
        alpha: Largest share of wrong fields among those that are not marked.
        delta: Probability that the guarantee fails.

    Raises:
        InputError: An answer is no JSON, a label is of a path that is no field, or is
            neither 0 nor 1; as for ``Threshold.for_error_rate``, too.

    Example:
        >>> row = {"main_answer": '{"city": "Bern"}'}
        >>> right = row | {
        ...     "samples": ['{"city": "Bern"}'],
        ...     "field_labels": {"/city": 1},
        ... }
        >>> wrong = row | {
        ...     "samples": ['{"city": "Rome"}'],
        ...     "field_labels": {"/city": 0},
        ... }
        >>> rows = [{"id": n, **(right if n % 2 else wrong)} for n in range(200)]
        >>> calibrate_fields(rows, alpha=0.1).status
        'certified'
    """
    us: list[float] = []
    labels: list[Any] = []
    for row in rows:
        if not row.get("field_labels"):
            continue
        found, known = labelled_fields(row)
        uncertainties = {field.path: field.uncertainty for field in found}
        # By the id, so that nobody can draw until a threshold is to their liking.
        path = Random(str(row["id"])).choice(sorted(known))  # noqa: S311 - no secret
        us.append(uncertainties[path])
        labels.append(known[path])
    if not us:
        msg = "expected recordings with field_labels, got none"
        raise InputError(msg)
    return Threshold.for_error_rate(us, labels, alpha=alpha, delta=delta)


def labelled_fields(row: Mapping[str, Any], /) -> tuple[list[Field], Mapping[str, Any]]:
    """The fields of a recording, and by path the labels of those that have one."""
    known = row.get("field_labels") or {}
    if not isinstance(known, Mapping):
        msg = f"expected field_labels by path, got a {type(known).__name__}"
        raise InputError(msg)
    question = row.get("question")
    found = score_fields(row["main_answer"], row["samples"], question=question)
    if unknown := known.keys() - {field.path for field in found}:
        msg = f"recording {row['id']} has no field {min(unknown)!r} to label"
        raise InputError(msg)
    if bad := [label for label in known.values() if label not in (0, 1)]:
        msg = f"expected 1 or 0 for each of field_labels, got {bad[0]!r}"
        raise InputError(msg)
    return found, known


def read_value(given: Any, /) -> Any:  # noqa: ANN401 - as above
    """Return the dict or list that is given, as text or model too, or ``Elsewhere``."""
    if isinstance(given, str):
        given = read_json(without_reasoning(given))
    elif hasattr(given, "model_dump"):
        given = given.model_dump(mode="json")
    return given if isinstance(given, dict | list) else Elsewhere()


def value_at(value: Any, path: str, /, absent: object = None) -> Any:  # noqa: ANN401 - as above
    """Return the value under a JSON Pointer, ``absent`` where there is none."""
    for part in path.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return absent
    return value


def _keyed(given: Any) -> Any:  # noqa: ANN401 - as above
    try:
        return keyed(read_value(given))
    except RecursionError:  # nested too deeply to be compared
        return Elsewhere()


def _leaves(path: str, values: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the path of each field, and what each reply has in it, the answer first."""
    inside = [*_inside(values)]
    if not inside:
        yield path, values
    for step, each in inside:
        yield from _leaves(f"{path}/{step.replace('~', '~0').replace('/', '~1')}", each)


def _inside(values: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the parts of an object or a list; nothing of another value."""
    kind: Any = type(values[0])
    if kind not in {dict, list}:
        return
    # Null is like an object or a list without anything in it.
    same: list[Any] = [
        each if isinstance(each, kind) else kind() if each == NULL else Elsewhere()
        for each in values
    ]
    if kind is dict:
        for key in dict.fromkeys(chain.from_iterable(same)):
            yield str(key), [each.get(key, NULL) for each in same]
        return
    aligned = matched(*same)
    for place, row in enumerate(same[0]):
        yield str(place), [row, *(each[place] for each, _ in aligned)]
    if any(further for _, further in aligned):
        yield "-", [NULL, *(further or NULL for _, further in aligned)]


def _field(path: str, values: Sequence[Any], question: str | None) -> Field:
    """Return the anchored SNNE of what each reply has in a field."""
    keys = [*map(key_of, values)]
    if len({*keys}) == 1:
        return Field(path=path, uncertainty=0.0, supported=len(keys) - 1)
    matrix = alike(keys, question=question)
    u, supported = _uncertainty(len(keys), matrix.tobytes()), matrix[0, 1:] > _HALF
    return Field(path=path, uncertainty=u, supported=int(supported.sum()))


@lru_cache(maxsize=1024)
def _uncertainty(n: int, matrix: bytes) -> float:
    """Return the anchored SNNE in [0, 1]; long lists have the same matrix often."""
    value = snne(np.frombuffer(matrix).reshape(n, n), anchor=ANCHORS["content_f1"])
    u = uncertainty(value, n)
    assert u is not None  # noqa: S101 - of two values or more
    return u
