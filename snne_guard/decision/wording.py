"""Promises in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snne_guard.decision.threshold import Threshold

__all__ = ["percent", "statement"]


def percent(share: float) -> str:
    """Return a share in per cent.

    Example:
        >>> percent(0.1), percent(0.123456)
        ('10 %', '12.3 %')
    """
    return f"{100 * share:.3g} %"


def statement(threshold: Threshold) -> str:
    """Return what a threshold promises, or why it promises nothing."""
    if threshold.status == "fixed":
        return f"Answers with u <= {threshold.value:g} are accepted: {_CHOSEN}"
    if threshold.status == "certified":
        return _PROMISES[threshold.kind](threshold)
    return _no_promise(threshold)


_CHOSEN = "a limit that someone chose, which promises nothing."


def _error_rate(one: Threshold) -> str:
    return (
        f"With a probability of at least {percent(1 - (one.delta or 0))} over the draw "
        f"of the graded questions, at most {percent(one.level or 0)} of the accepted "
        f"answers are wrong{_nearly(one)}: those with u <= {one.value:.4g}, "
        f"{percent(one.acceptance or 0)} of the answers ({_seen(one)})."
    )


def _joint_error(one: Threshold) -> str:
    return (
        f"On average over the draw of the graded questions, at most "
        f"{percent(one.level or 0)} of all answers are accepted and wrong; accepted "
        f"are those with u <= {one.value:.4g}, {percent(one.acceptance or 0)} of the "
        f"answers ({_seen(one)})."
    )


def _false_refusal(one: Threshold) -> str:
    return (
        f"On average over the draw of the graded questions, at most "
        f"{percent(one.level or 0)} of the correct answers are refused, those with "
        f"u > {one.value:.4g}; {percent(one.acceptance or 0)} of the answers are not "
        f"({_seen(one, 'not refused')})."
    )


def _coverage(one: Threshold) -> str:
    low, high = one.acceptance_interval or (0.0, 1.0)
    return (
        f"On average over the draw of the {one.n_labels} scores, at least "
        f"{percent(one.level or 0)} of the answers are accepted, those with "
        f"u <= {one.value:.4g}; with these scores it is a share between "
        f"{percent(low)} and {percent(high)} in 9 of 10 draws. It says "
        "nothing of errors."
    )


_PROMISES = {
    "error_rate": _error_rate,
    "joint_error": _joint_error,
    "false_refusal": _false_refusal,
    "coverage": _coverage,
}


def _no_promise(one: Threshold) -> str:
    asked = _ASKED[one.kind].format(percent(one.level or 0))
    labels = _LABELS[one.kind]
    if one.status == "too_few_labels":
        return (
            f"Nothing is accepted: {one.n_labels} {labels} are too few for {asked}; "
            f"it takes at least {one.labels_needed}."
        )
    return (
        f"Nothing is accepted: these {one.n_labels} {labels} do not allow {asked}. "
        f"{_outlook(one)}"
    )


_LABELS = {
    "error_rate": "labels",
    "joint_error": "labels",
    "false_refusal": "labels",
    "coverage": "scores",
}
_ASKED = {
    "error_rate": "an error rate of {} among accepted answers",
    "joint_error": "{} accepted and wrong answers",
    "false_refusal": "{} refused correct answers",
    "coverage": "a share of {} accepted answers",
}


def _outlook(one: Threshold) -> str:
    """Say what would have been possible, or what it would take."""
    parts: list[str] = []
    why = (
        "even the answers with the smallest u are wrong too often"
        if one.kind in {"error_rate", "joint_error"}
        else "too many answers could not be scored"
    )
    if one.best_level is not None:
        parts.append(
            f"The nearest that they would have allowed is {percent(one.best_level)}."
        )
    if one.labels_needed is None:
        parts.append(f"More {_LABELS[one.kind]} like these would not do: {why}.")
    elif one.labels_needed > one.n_labels:
        parts.append(f"It would take about {one.labels_needed} labels like these.")
    else:
        parts.append(
            "As many labels from questions like these allow it in about every second "
            "draw, and not in this one."
        )
    return " ".join(parts)


def _seen(one: Threshold, kept: str = "accepted") -> str:
    return f"{one.n_wrong} wrong of {one.n_accepted} {kept} among {one.n_labels} graded"


def _nearly(one: Threshold) -> str:
    return " (approximately)" if one.approximate else ""
