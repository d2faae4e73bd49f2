"""What a reader of a promise must know about the answers that it was made by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snne_guard.evaluation.calibrating.drawn_alike import DrawnAlike, reasons_of
from snne_guard.evaluation.calibrating.graded import Answers, repeated
from snne_guard.evaluation.grading.honesty import answer_among_samples
from snne_guard.evaluation.labelling.labels import HAND
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["cautions"]


def cautions(
    answers: Answers, alike: DrawnAlike, kept: Sequence[Recording], *, labelled: bool
) -> tuple[str, ...]:
    """Return what is to be said beside a promise, in sentences.

    Args:
        answers: The recordings and their grades.
        alike: How they were drawn.
        kept: Those that the promise is made by.
        labelled: Whether the promise is made by their grades.
    """
    of_labels = _of_labels(answers) if labelled else ()
    return (
        *of_labels,
        *_of_questions(kept),
        *_of_samples(kept),
        *_of_model(alike),
    )


def _of_labels(answers: Answers) -> Iterator[str]:
    ungraded = sum(one is None for one in answers.correct)
    if answers.skipped:
        yield (
            f"{_were(answers.skipped, 'answer')} skipped by hand: the promise is about "
            "answers that can be graded"
        )
    if ungraded and answers.partial:
        yield (
            f"{ungraded} of the recordings have no label and nobody says how the "
            "others were picked: the promise holds only if that was at random"
        )
    machines = {
        name: count
        for name, count in answers.graders.items()
        if name not in {HAND, "label"}
    }
    if machines:
        told = ", ".join(f"{name} {count}" for name, count in machines.items())
        yield (
            f"grades of a program ({told}): what is promised is how often that program "
            "calls an answer wrong"
        )


def _of_questions(kept: Sequence[Recording]) -> Iterator[str]:
    again = repeated(kept)
    if again:
        yield (
            f"{_were(again, 'question')} asked before among the same recordings: "
            "answers to the same question are no independent evidence, so the promise "
            "is weaker than it says"
        )
    taken = answer_among_samples(kept).warning
    if taken:
        yield taken


def _of_samples(kept: Sequence[Recording]) -> Iterator[str]:
    alike = sum("suspect_agreement" in reasons_of(row) for row in kept)
    if alike:
        yield (
            f"the samples of {alike} recordings agree as independent draws would not: "
            "perhaps a cache answered, or the temperature was ignored; a guard sees it "
            "only by log-probabilities, which it asks for where its method uses them"
        )


def _of_model(alike: DrawnAlike) -> Iterator[str]:
    if alike.model is None:
        yield (
            "the recordings do not say which model answered, and a guard whose model "
            "has a name does not start from such a calibration: say it (--model)"
        )
    if len(alike.reply_models) > 1:
        yield (
            f"replies carried several names of models ({', '.join(alike.reply_models)}"
            "): the promise is about the same mixture of them"
        )


def _were(count: int, what: str) -> str:
    return f"1 {what} was" if count == 1 else f"{count} {what}s were"
