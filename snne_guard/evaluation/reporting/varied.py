"""What came of varying something, as a table: methods by the values it had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from snne_guard.evaluation.results import Curve

__all__ = ["Varied", "metric_of", "varied"]


class Varied(NamedTuple):
    """A table of methods by the values that something had."""

    columns: tuple[str, ...]
    rows: dict[str, tuple[float | None, ...]]


def metric_of(curves: Iterable[Curve]) -> str:
    """Return what curves show, as it is called in a table.

    Example:
        >>> metric_of([Curve(label="snne", x=(), y=(), metric="prr")])
        'PRR'
    """
    return "PRR" if any(curve.metric == "prr" for curve in curves) else "AUROC"


def varied(curves: Sequence[Curve]) -> Varied:
    """Return curves as a table.

    Curves of one point each have no order: what they compare answers with, in brackets
    in their labels, heads the columns in place of their abscissae.

    Example:
        >>> varied([Curve(label="snne", x=(0.1, 1.0), y=(0.5, 0.6))])
        Varied(columns=('0.1', '1'), rows={'snne': (0.5, 0.6)})
        >>> varied([Curve(label="snne[exact]", x=(0.0,), y=(0.5,))])
        Varied(columns=('exact',), rows={'snne': (0.5,)})
    """
    found: dict[str, dict[str, float | None]] = {}
    if all(len(curve.x) == 1 for curve in curves):
        for curve in curves:
            method, _, relation = curve.label.removesuffix("]").partition("[")
            found.setdefault(method, {})[relation] = curve.y[0]
        columns = [*dict.fromkeys(one for row in found.values() for one in row)]
    else:
        columns = [f"{x:g}" for x in sorted({x for curve in curves for x in curve.x})]
        for curve in curves:
            places = (f"{x:g}" for x in curve.x)
            found[curve.label] = dict(zip(places, curve.y, strict=True))
    return Varied(
        tuple(columns),
        {
            name: tuple(row.get(column) for column in columns)
            for name, row in found.items()
        },
    )
