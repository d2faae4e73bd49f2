"""What a reader of a set's figures must know before believing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snne_guard.evaluation.comparison.plan import Planned
from snne_guard.evaluation.comparison.standing import Standing
from snne_guard.evaluation.comparison.survey import Part
from snne_guard.evaluation.grading.agreement import both_lexical, labels_by_tokens
from snne_guard.evaluation.grading.grade import Grader
from snne_guard.evaluation.grading.honesty import answer_among_samples
from snne_guard.evaluation.labelling.kept import BY_LABEL

__all__ = ["warnings_of"]

_FEW = 100
_KINDS = 2


def warnings_of(
    part: Part, standing: Standing, /, *, grader: Grader, plan: Sequence[Planned]
) -> Iterator[str]:
    """Yield the warnings, in words.

    Args:
        part: The set.
        standing: Its questions that are ranked.
        grader: Who graded those without a label.
        plan: The methods, the ranked ones among them.
    """
    if not part.rows:
        yield (
            "no question has a grade: no labels, and no other grader was named or "
            "could grade; nothing is ranked"
        )
        return
    yield from part.notes
    if part.hardest:
        yield (
            f"{part.hardest} labels were given with the most uncertain answers first: "
            "what they say is of such answers, and not of all that were recorded"
        )
    if len(part.datasets) > 1:
        yield (
            f"the questions are of {len(part.datasets)} data sets: where the share of "
            "right answers differs between them, an AUROC over all of them partly "
            "measures which one a question is from; --by dataset ranks each apart"
        )
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
    yield from _same_words(standing, grader, plan)
    if standing.correct is None:
        yield (
            "the grader says how good answers are but not which are right: there is no "
            "AUROC, and PRR is the figure to look at"
        )
    elif len(set(standing.correct.tolist())) < _KINDS:
        kind = "right" if standing.correct[0] else "wrong"
        yield f"all answers are {kind}: there is nothing to tell apart, so no AUROC"
    if len(standing.rows) < _FEW:
        yield f"only {len(standing.rows)} questions: the intervals are wide"


def _same_words(
    standing: Standing, grader: Grader, plan: Sequence[Planned]
) -> Iterator[str]:
    """Yield what is wrong with a grader that sees what a similarity sees."""
    unlabelled = {row.grade.grader for row in standing.rows if row.grade} - BY_LABEL
    relations = [
        planned.relation
        for planned in plan
        if planned.name in standing.uncertainties and planned.relation is not None
    ]
    lexical = dict.fromkeys(
        one.name for one in relations if both_lexical(grader, one.similarity)
    )
    if unlabelled and lexical:
        yield (
            f"{' and '.join(sorted(unlabelled))} and {', '.join(lexical)} look at the "
            "same words, so that methods on them may seem to know more than they do: "
            "see how far another grader agrees (--second-grader)"
        )
