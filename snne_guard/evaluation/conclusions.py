"""What an evaluation found, and what to do about it, in sentences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from snne_guard.decision import Threshold
from snne_guard.evaluation.accepting import error_at, in_words
from snne_guard.evaluation.ranking import BASELINE, Evaluation

_FEW = 100  # answers whose intervals are wide
_MANY = 0.05  # share of answers that are never accepted, to be mended first
_SHARE = 0.8  # of the answers, accepted as an example


def findings(evaluation: Evaluation, /) -> Iterator[str]:
    """Yield the findings, the first method's figures first."""
    n, first, correct = len(evaluation.ids), evaluation.rows[0], evaluation.correct
    if correct is None:
        yield f"{n} answers have a quality, but are neither right nor wrong."
        return
    wrong = n - int(correct.sum())
    if wrong in {0, n}:
        yield f"All {n} answers are {'wrong' if wrong else 'right'}: nothing to find."
        return
    found = first.metrics["auroc"]
    yield (
        f"{wrong} of {n} answers ({wrong / n:.0%}) are wrong. Take a wrong and a right "
        f"one: in {found.value:.0%} of such pairs {first.name} is higher for the wrong "
        f"one ({found.low:.0%} to {found.high:.0%}; 50% is chance)."
    )
    if evaluation.u is not None:
        left = error_at(evaluation.u, correct, _SHARE)
        if not math.isnan(left):
            yield (
                f"Accept the most certain {_SHARE:.0%}: {left:.1%} of them are wrong, "
                f"for {wrong / n:.1%} of all."
            )


def skipped_by_reason(evaluation: Evaluation, /) -> dict[str, list[str]]:
    """Return the methods that were not ranked, by the reason."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name, why in evaluation.skipped.items():
        names[why].append(name)
    return names


def advice(evaluation: Evaluation, threshold: Threshold | None, /) -> Iterator[str]:
    """Yield advice, the most urgent first, for the threshold of an error rate."""
    n, first = len(evaluation.ids), evaluation.rows[0]
    never = evaluation.never_accepted
    if sum(never.values()) > _MANY * n:
        yield (
            f"Mend the recording first: a calibrated guard never accepts "
            f"{sum(never.values())} of {n} answers, most of them for "
            f"{in_words(max(never, key=never.__getitem__))}."
        )
    if evaluation.correct is None:
        yield "Grade them as right or wrong to see what a guard would accept."
    elif len({*evaluation.correct.tolist()}) == 1:
        yield "Check the grades, or record questions of which some go wrong."
    elif threshold is None:
        yield f"Name a method first that has u, such as snne; {first.name} has none."
    if threshold is None:
        return
    yield from _comparisons(evaluation)
    if n < _FEW:
        yield f"Grade more answers: with {n}, the intervals are wide."
    if not threshold.certified:
        yield f"Before a guard can rely on a threshold: {threshold.statement}"
    yield (
        "Choose an error rate, and make a threshold of answers that you have not "
        "looked at: snne-guard calibrate RECORDING --error-rate "
        f"{threshold.alpha:g} --out guard.json."
    )


def _comparisons(evaluation: Evaluation) -> Iterator[str]:
    """Yield advice from the comparisons of methods and recipes."""
    first = evaluation.rows[0]
    gains = {row.name: row.differences.get("auroc") for row in evaluation.rows}
    length = gains[BASELINE]
    if length is None or not length.high < 0:
        yield (
            f"Do not rely on {first.name} yet: it is not clearly better than the "
            "length of the answer. Grade more answers, or try a self-check, views or "
            "another model."
        )
    best = evaluation.recipes and evaluation.recipes.at_equal_calls
    if best and best.name != "plain" and best.gain and best.gain.low > 0:
        yield (
            f"Use the recipe {best.name}: with as many calls ({best.calls}) it finds "
            "clearly more than plain samples."
        )
    better = [name for name, gain in gains.items() if gain and gain.low > 0]
    if better:
        yield (
            f"Try {better[0]} on other answers: on these it is clearly better than "
            f"{first.name}, but the best of many looks better than it is."
        )
