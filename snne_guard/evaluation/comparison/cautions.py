"""What a reader of a set's figures must know before believing them."""

from __future__ import annotations

from collections.abc import Iterator

from snne_guard.evaluation.agreement import labels_by_tokens
from snne_guard.evaluation.comparison.standing import Standing
from snne_guard.evaluation.comparison.survey import Part
from snne_guard.evaluation.honesty import answer_among_samples

__all__ = ["warnings_of"]

_FEW = 100
_KINDS = 2


def warnings_of(part: Part, standing: Standing, /) -> Iterator[str]:
    """Yield the warnings, in words."""
    if not part.rows:
        yield (
            "no question has a grade: no labels, and no other grader was named or "
            "could grade; nothing is ranked"
        )
        return
    if told := answer_among_samples(part.first).warning:
        yield told
    if (found := labels_by_tokens(part.first)) is not None:
        yield (
            f"the labels agree with token F1 on {found.share:.0%} of {found.n} "
            "answers; a similarity of words looks at the same tokens, so that it may "
            "seem to know more than it does"
        )
    if not standing.uncertainties:
        yield "no method could be ranked"
        return
    if not standing.rows:
        yield "no question was scored by every method"
        return
    if standing.correct is None:
        yield "the grader says how good answers are but not which are right: no AUROC"
    elif len(set(standing.correct.tolist())) < _KINDS:
        kind = "right" if standing.correct[0] else "wrong"
        yield f"all answers are {kind}: there is nothing to tell apart, so no AUROC"
    if len(standing.rows) < _FEW:
        yield f"only {len(standing.rows)} questions: the intervals are wide"
