"""A threshold for fields that carries a guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from snne_guard.decision import Threshold
from snne_guard.errors import InputError
from snne_guard.fields.scoring import score_fields


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
        known = row.get("field_labels") or {}
        if not known:
            continue
        if not isinstance(known, Mapping):
            msg = f"expected field_labels by path, got a {type(known).__name__}"
            raise InputError(msg)
        question = row.get("question")
        found = score_fields(row["main_answer"], row["samples"], question=question)
        uncertainties = {field.path: field.uncertainty for field in found}
        if unknown := [path for path in known if path not in uncertainties]:
            msg = f"recording {row['id']} has no field {unknown[0]!r} to label"
            raise InputError(msg)
        # By the id, so that nobody can draw until a threshold is to their liking.
        path = Random(str(row["id"])).choice(sorted(known))  # noqa: S311 - no secret
        us.append(uncertainties[path])
        labels.append(known[path])
    return Threshold.for_error_rate(us, labels, alpha=alpha, delta=delta)
