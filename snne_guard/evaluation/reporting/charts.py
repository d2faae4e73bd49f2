"""The charts of the report: what is drawn, in which colours, and what it says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator

from snne_guard.evaluation.reporting.svg import INK, Axes, inks, inline, panel, plotting
from snne_guard.evaluation.reporting.text import number
from snne_guard.evaluation.results import Curve

__all__ = ["Chart", "Lines", "Style", "histogram", "lines"]

RIGHT, WRONG = "right answers", "wrong answers"
_BINS = 20
_MARKED = 12
_LARGEST = 1e100
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a method looks in every chart of a set.

    Attributes:
        ink: Number of its colour.
        dash: Lengths of strokes and gaps, empty for a full line.
        width: Of the line.
    """

    ink: int
    dash: tuple[float, ...] = ()
    width: float = 1.6

    @property
    def colour(self) -> str:
        """What stands in for the page's variable while matplotlib draws."""
        return inks()[self.ink]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart as the page shows it.

    Attributes:
        title: What it shows.
        svg: The picture.
        caption: How to read it.
        legend: The names in it and how they look.
        head: Headings of the same in numbers, empty where there are too many.
        rows: The numbers, as they are to be shown.
    """

    title: str
    svg: str
    caption: str
    legend: tuple[tuple[str, Style], ...]
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What a chart of lines is to show.

    Attributes:
        title: What it shows.
        caption: How to read it.
        x_label: Of the abscissa.
        y_label: Of the ordinate.
        reference: A line to compare with, empty for none.
        square: Whether both axes run from 0 to 1.
        few: Whether there are so few points that each is marked, and listed below.
        whole: Whether the abscissa has whole numbers only.
        logarithmic: Whether its steps are ratios, as those of tau are.
    """

    title: str
    caption: str
    x_label: str
    y_label: str
    reference: tuple[Point, ...] = ()
    square: bool = False
    few: bool = False
    whole: bool = False
    logarithmic: bool = False


def lines(
    about: Lines,
    curves: Iterable[Curve],
    styles: Mapping[str, Style],
    *,
    name: str,
    notes: Mapping[str, str] | None = None,
    listed: Iterable[Curve] = (),
) -> Chart | None:
    """Return a chart of the curves that have a style, None where nothing is to see.

    Args:
        about: What it is to show.
        curves: The curves, the most important one last.
        styles: Those of the methods that are shown, under the labels of the curves.
        name: Unique in the page.
        notes: What is said of each curve to those who do not see it.
        listed: What is listed below where there are few points; else what is drawn.
    """
    order = list(styles)
    shown = sorted(
        (found for curve in curves if curve.label in styles if (found := _kept(curve))),
        key=lambda curve: order.index(curve.label),
    )
    if not shown:
        return None
    # As many questions at each point are said once, at the top.
    counted = [curve for curve in shown if len(set(curve.counts)) > 1]
    with plotting(name):
        figure, axes, below = panel(
            x_label=about.x_label, y_label=about.y_label, counts=bool(counted)
        )
        if about.reference:
            x, y = zip(*about.reference, strict=True)
            axes.plot(x, y, color=INK, linewidth=1, dashes=(1, 2), alpha=0.7)
        for curve in reversed(shown):
            _draw(axes, curve, styles[curve.label], marked=about.few)
        _limits(axes, about)
        if below is not None:
            _count(below, counted, styles, square=about.square)
            if not about.square:
                axes.set_xlim(below.get_xlim())
            below.set_xlim(axes.get_xlim())
            below.xaxis.set_major_locator(axes.xaxis.get_major_locator())
            below.xaxis.set_major_formatter(axes.xaxis.get_major_formatter())
        said = notes or {}
        description = "; ".join(said.get(c.label) or _ends(c) for c in shown)
        svg = inline(figure, name, title=about.title, description=description)
    chart = Chart(
        title=about.title,
        svg=svg,
        caption=about.caption,
        legend=tuple((curve.label, styles[curve.label]) for curve in shown),
    )
    if not about.few:
        return chart
    head, rows = _table(
        about, [kept for each in listed if (kept := _kept(each))] or shown
    )
    return replace(chart, head=head, rows=rows)


def _kept(curve: Curve) -> Curve | None:
    """Return a curve without what has no place, None where no point has one."""
    keep = [at for at, x in enumerate(curve.x) if math.isfinite(x)]
    kept = Curve(
        label=curve.label,
        x=tuple(curve.x[at] for at in keep),
        y=tuple(_finite(curve.y[at]) for at in keep),
        low=tuple(_finite(curve.low[at]) for at in keep) if curve.low else (),
        high=tuple(_finite(curve.high[at]) for at in keep) if curve.high else (),
        counts=tuple(curve.counts[at] for at in keep) if curve.counts else (),
    )
    return kept if any(y is not None for y in kept.y) else None


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _floats(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _draw(axes: Axes, curve: Curve, style: Style, *, marked: bool) -> None:
    (line,) = axes.plot(
        curve.x,
        _floats(curve.y),
        color=style.colour,
        linewidth=style.width,
        marker="o" if marked else "",
        markersize=4,
        markevery=_marks(curve),
    )
    if style.dash:
        line.set_dashes(style.dash)
    # One band can be read; five on top of each other cannot.
    if style.ink == 0 and curve.low and curve.high:
        low, high = _floats(curve.low), _floats(curve.high)
        axes.fill_between(
            curve.x, low, high, color=style.colour, alpha=0.15, linewidth=0
        )


def _marks(curve: Curve) -> list[int]:
    """Return the points to mark: all if they are few, else those without a line."""
    known = [y is not None for y in (None, *curve.y, None)]
    return [
        at
        for at in range(len(curve.x))
        if len(curve.x) <= _MARKED or known[at : at + 3] == [False, True, False]
    ]


def _limits(axes: Axes, about: Lines) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if about.square:
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
    if about.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=about.whole))


def _plain(value: float, _: int) -> str:
    return f"{value:g}"


def _count(
    axes: Axes, curves: Sequence[Curve], styles: Mapping[str, Style], *, square: bool
) -> None:
    every = sorted({x for curve in curves for x in curve.x})
    gaps = [after - before for before, after in pairwise(every)]
    widest = 0.04 if square else math.inf
    # Bars of many curves may overlap, but each is to be seen.
    step = max(0.8 * min(gaps, default=1.0), 0.02 * (every[-1] - every[0]))
    step = min(step, widest)
    same = len({(curve.x, curve.counts) for curve in curves}) == 1
    for curve in curves[:1] if same else curves:
        colour = INK if same else styles[curve.label].colour
        axes.bar(curve.x, curve.counts, width=step, color=colour, alpha=0.35)
    axes.yaxis.set_major_locator(MaxNLocator(1, integer=True))
    axes.set_ylabel("n", rotation=0, ha="right", va="center")


def _ends(curve: Curve) -> str:
    known = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
    (first, start), (last, end) = known[0], known[-1]
    return (
        f"{curve.label}: {number(start)} at {_short(first)}, "
        f"{number(end)} at {_short(last)}"
    )


Rows = tuple[tuple[str, ...], ...]


def _table(about: Lines, curves: Sequence[Curve]) -> tuple[tuple[str, ...], Rows]:
    """Return a table of curves by abscissae, or of points where these differ."""
    if len({(curve.x, curve.counts) for curve in curves}) > 1 and about.square:
        head = ("method", about.x_label, about.y_label, "questions")
        return head, tuple(row for curve in curves for row in _points(curve))
    places = sorted({x for curve in curves for x in curve.x})
    rows = [
        (curve.label, *(number(at.get(x)) for x in places))
        for curve in curves
        for at in [dict(zip(curve.x, curve.y, strict=True))]
    ]
    counts: dict[float, int] = {}
    for curve in curves:
        counts.update(zip(curve.x, curve.counts, strict=False))
    if counts:
        shown = (f"{counts[x]:,}" if x in counts else number(None) for x in places)
        rows.append(("questions", *shown))
    return (about.x_label, *map(_short, places)), tuple(rows)


def _points(curve: Curve) -> Rows:
    counts = [f"{each:,}" for each in curve.counts] or [number(None)] * len(curve.x)
    return tuple(
        (curve.label, number(x), number(y), count)
        for x, y, count in zip(curve.x, curve.y, counts, strict=True)
    )


def _short(value: float) -> str:
    return number(value, 0) if float(value).is_integer() else number(value, 2)


def histogram(
    method: str,
    uncertainty: Sequence[float],
    correct: Sequence[int],
    *,
    name: str,
) -> Chart | None:
    """Return how the values of right and of wrong answers lie.

    Args:
        method: Whose values they are.
        uncertainty: ``(N,)`` values, higher is more uncertain.
        correct: ``(N,)`` 1 right, 0 wrong.
        name: Unique in the page.

    Returns:
        The chart, None where there is no finite value.
    """
    values, truth = np.asarray(uncertainty, float), np.asarray(correct, int)
    # Twenty bins over all floats that there are would not have finite edges.
    finite = np.abs(values) < _LARGEST
    if len(values) != len(truth) or not finite.any():
        return None
    edges = np.histogram_bin_edges(values[finite], bins=_BINS)
    looks = {RIGHT: Style(ink=6, width=1.4), WRONG: Style(ink=7, width=1.8)}
    said: list[str] = []
    legend: list[tuple[str, Style]] = []
    with plotting(name):
        figure, axes, _ = panel(
            x_label="uncertainty (the method's own unit)", y_label="share of each, %"
        )
        for (label, look), group in zip(looks.items(), (1, 0), strict=True):
            members = values[finite & (truth == group)]
            if not len(members):
                continue
            heights = np.histogram(members, edges)[0] * (100 / len(members))
            axes.stairs(heights, edges, fill=True, color=look.colour, alpha=0.22)
            axes.stairs(heights, edges, color=look.colour, linewidth=look.width)
            legend.append((label, look))
            middle = number(float(np.median(members)))
            said.append(f"{len(members):,} {label}, median {middle}")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        title = f"Scores of {method}"
        svg = inline(figure, name, title=title, description="; ".join(said))
    beyond = int((~finite).sum())
    missing = f" Not shown since not finite: {beyond:,}." if beyond else ""
    caption = (
        f"{'; '.join(said)}. The further right the wrong answers lie of the right "
        f"ones, the better.{missing}"
    )
    return Chart(title=title, svg=svg, caption=caption, legend=tuple(legend))
