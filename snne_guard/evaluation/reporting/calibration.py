"""The page about a calibration: one HTML file that needs nothing but a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from snne_guard.evaluation.calibrating import told
from snne_guard.evaluation.calibrating.results import CalibrationRun
from snne_guard.evaluation.reporting.report import check_report_extra
from snne_guard.evaluation.results import Curve

if TYPE_CHECKING:
    from snne_guard.evaluation.reporting.charts import Chart

__all__ = ["calibration_html"]

_STEPS = 101
_CURVE = (
    "Share of wrong answers among the accepted ones (observed on the graded answers) "
    "when more and more are accepted, the certain ones first."
)


def calibration_html(run: CalibrationRun, /, *, note: str | None = None) -> str:
    """Return a page that shows a calibration and what it was made of.

    It holds no text of a question or an answer.

    Args:
        run: What ``run_calibration`` returned.
        note: What is to be said of how often the labels were used.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    check_report_extra()
    from snne_guard.evaluation.reporting import text
    from snne_guard.evaluation.reporting.page import environment

    made = run.calibration
    charts = [_risk(run), _reading(run)]
    template = environment().get_template("calibration.html.j2")
    page = template.render(
        calibration=made,
        refuse=made.refuse,
        facts=list(told.facts(run)),
        costs=told.costs(run),
        explored=told.EXPLORED,
        warnings=[*run.warnings, *([note] if note else [])],
        charts=[chart for chart in charts if chart is not None],
    )
    return text.clean(page)


def _risk(run: CalibrationRun) -> Chart | None:
    from snne_guard.evaluation.reporting.charts import Lines, Style, lines

    curve = told.curve(run)
    if curve is None:
        return None
    chosen = told.chosen_point(run)
    level = told.asked(run)
    curves = [curve]
    styles = {curve.label: Style(ink=0)}
    if chosen is not None:
        share, error = chosen
        # A line from the axis to the point, since the point alone is small.
        drop = Curve(label=told.CHOSEN, x=(share, share), y=(0.0, error))
        curves.append(drop)
        styles = {told.CHOSEN: Style(ink=7, width=2.4), **styles}
    return lines(
        Lines(
            title="Errors among accepted answers",
            caption=_risk_caption(asked=level is not None, chosen=chosen is not None),
            x_label="share accepted",
            y_label="share wrong",
            reference=() if level is None else ((0.0, level), (1.0, level)),
            few=True,
        ),
        curves,
        styles,
        name="risk",
    )


def _risk_caption(*, asked: bool, chosen: bool) -> str:
    told = [_CURVE]
    if asked:
        told.append("The rate that was asked for is dotted.")
    if chosen:
        told.append("The upright line ends at the chosen threshold.")
    else:
        told.append("There is no chosen threshold, since nothing may be accepted.")
    if asked and chosen:
        told.append("The promise is a bound, so that lies below what was asked for.")
    elif asked:
        told.append(
            "Where the curve lies below it, so few answers may be so by chance."
        )
    return " ".join(told)


def _reading(run: CalibrationRun) -> Chart | None:
    from snne_guard.evaluation.reporting.charts import Lines, Style, lines

    [*maps] = run.calibration.probability.values()
    if not maps:
        return None
    at = np.linspace(0, 1, _STEPS).tolist()
    p, low, high = zip(*map(maps[0], at), strict=True)
    name = "P(wrong)"
    return lines(
        Lines(
            title="The reading in per cent",
            caption=(
                "How probable it is that an answer with this u is wrong, learnt from "
                "the graded answers, with a band that holds 90 % of bootstrap draws. "
                "It is a reading, and no promise."
            ),
            x_label="u",
            y_label="P(wrong)",
            square=True,
        ),
        [Curve(label=name, x=tuple(at), y=p, low=low, high=high)],
        {name: Style(ink=0)},
        name="reading",
    )
