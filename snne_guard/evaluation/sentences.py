"""How well the uncertainty of sentences finds the wrong ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from snne_guard.evaluation.metrics import auroc
from snne_guard.evaluation.recordings import Recording
from snne_guard.spans.scoring import labelled_spans
from snne_guard.types import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRanking:
    """How well the uncertainty of sentences finds the wrong ones.

    Attributes:
        answers: Answers that are labelled by sentence.
        sentences: Their sentences.
        accuracy: Share of right sentences.
        auroc: Of all sentences; NaN where all are right, or all wrong.
        within: Mean over the answers that have right and wrong ones; NaN without any.
        grounded: AUROC of ``grounded`` of all sentences; None unless each has a number.
    """

    answers: int
    sentences: int
    accuracy: float
    auroc: float
    within: float
    grounded: float | None = None


def labelled_sentences(
    recording: Recording, /
) -> Iterator[tuple[list[Span], Sequence[int]]]:
    """Yield the sentences of an answer with their labels, if it has any."""
    if recording.extra.get("sentence_labels") is not None:
        yield labelled_spans(recording.to_dict())


def ranked_sentences(
    labelled: Sequence[tuple[Sequence[Span], Sequence[int]]], /
) -> SentenceRanking | None:
    """Rank the sentences of answers by their labels; None where there are none."""
    found = [([one.uncertainty for one in spans], right) for spans, right in labelled]
    if not any(us for us, _ in found):
        return None
    each = [auroc(us, right) for us, right in found if us]
    both = [value for value in each if not math.isnan(value)]
    uncertainty = np.concatenate([us for us, _ in found])
    correct = np.concatenate([right for _, right in found])
    grounded = [one.grounded for spans, _ in labelled for one in spans]
    doubts = [1 - number for number in grounded if number is not None]
    return SentenceRanking(
        answers=len(labelled),
        sentences=len(correct),
        accuracy=float(correct.mean()),
        auroc=auroc(uncertainty, correct),
        within=float(np.mean(both)) if both else math.nan,
        grounded=auroc(doubts, correct) if len(doubts) == len(correct) else None,
    )
