"""What came of varying something: a chart where there is an order, else a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from snne_guard.evaluation.reporting.charts import Chart, Lines, Style, lines
from snne_guard.evaluation.reporting.kinds import with_chance
from snne_guard.evaluation.reporting.text import number
from snne_guard.evaluation.reporting.varied import metric_of, varied
from snne_guard.evaluation.results import Curve

__all__ = ["ablation"]

_CHANCE = "The dotted line is chance."
_DRAWN = 6
_SPARE = tuple(
    Style(ink=ink, dash=dash)
    for dash in ((), (4, 2), (1, 1))
    for ink in (1, 2, 4, 6, 7, 3, 0, 5)
)

_ABLATED = {
    "tau": Lines(
        title="Temperature tau of the formula",
        caption="{metric} by tau.",
        x_label="tau",
        y_label="{metric}",
        few=True,
        logarithmic=True,
    ),
    "samples": Lines(
        title="Number of answers, every method",
        caption="{metric} by the number of scored answers.",
        x_label="scored answers",
        y_label="{metric}",
        few=True,
        whole=True,
    ),
    "temperature": Lines(
        title="Temperature of the samples",
        caption="{metric} among the questions that were sampled at each temperature.",
        x_label="temperature of the samples",
        y_label="{metric}",
        few=True,
    ),
    "similarity": Lines(
        title="Similarity",
        caption="{metric} of each method over each similarity.",
        x_label="",
        y_label="{metric}",
    ),
    "snne_minus_se_by_clusters": Lines(
        title="SNNE less semantic entropy, by number of groups",
        caption=(
            "Above the dotted line SNNE has the higher AUROC among questions whose "
            "answers fall into as many groups."
        ),
        x_label="groups of equal answers",
        y_label="difference of AUROC",
        few=True,
        whole=True,
    ),
}


def ablation(
    name: str, curves: Sequence[Curve], styles: Mapping[str, Style], anchor: str
) -> Chart | None:
    """Return what came of varying something, None where nothing did.

    Args:
        name: What was varied.
        curves: AUROC or PRR by its values; curves of one point each have no order.
        styles: How the methods look in the other charts.
        anchor: Unique in the page.
    """
    about = _ABLATED.get(name) or Lines(
        title=name,
        caption="{metric}.",
        x_label="value",
        y_label="{metric}",
        few=True,
    )
    metric = metric_of(curves)
    about = replace(
        about,
        caption=about.caption.format(metric=metric),
        y_label=about.y_label.format(metric=metric),
    )
    if all(len(curve.x) == 1 for curve in curves):
        return _pivoted(about, curves)
    if "minus" in name:
        about = with_chance(about, curves, chance=0.0)
    elif metric == "AUROC":
        about = replace(about, caption=f"{about.caption} {_CHANCE}")
        about = with_chance(about, curves)
    return lines(
        about,
        curves,
        _looks(curves, styles),
        name=anchor,
        listed=curves,
    )


def _looks(curves: Sequence[Curve], styles: Mapping[str, Style]) -> dict[str, Style]:
    """Return how curves look: as elsewhere, those that are not there as they may."""
    known = {c.label: styles[c.label] for c in curves if c.label in styles}
    others = [c.label for c in curves if c.label not in known]
    spare = [style for style in _SPARE if style not in known.values()]
    free = max(0, _DRAWN - len(known))
    return {**known, **dict(zip(others[:free], spare, strict=False))}


def _pivoted(about: Lines, curves: Sequence[Curve]) -> Chart | None:
    """Return a table of methods by what they compare answers with."""
    if not curves:
        return None
    columns, rows = varied(curves)
    return Chart(
        title=about.title,
        svg="",
        caption=about.caption,
        legend=(),
        head=("method", *(column or about.y_label for column in columns)),
        rows=tuple(
            (method, *(number(value) for value in values))
            for method, values in rows.items()
        ),
    )
