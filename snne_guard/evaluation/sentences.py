"""How well made-up sentences are found in recordings that are labelled by sentence."""

from __future__ import annotations

import numpy as np

from snne_guard.evaluation.metrics import auroc
from snne_guard.evaluation.recordings import Recording
from snne_guard.evaluation.results import SentenceRanking
from snne_guard.spans.scoring import labelled_spans

__all__ = ["SentenceTable"]


class SentenceTable:
    """Collects the sentences of the recordings that have ``sentence_labels``.

    Their fields are described at ``calibrate_spans``.
    """

    def __init__(self) -> None:
        self._us: list[list[float]] = []
        self._right: list[list[int]] = []

    def add(self, recording: Recording) -> None:
        """Score the sentences of a recording, if they are labelled.

        Raises:
            InputError: The labels do not fit the sentences, or are not 0 and 1.
            MissingExtraError: The extra ``spans`` is not installed.
        """
        if "sentence_labels" in recording.extra:
            spans, labels = labelled_spans(recording.to_dict())
            self._us.append([span.uncertainty for span in spans])
            self._right.append([*labels])

    def ranking(self) -> SentenceRanking | None:
        """Return how well they are ranked, None where there are none."""
        if not any(self._us):
            return None
        each = [auroc(*pair) for pair in zip(self._us, self._right, strict=True)]
        both = [value for value in each if not np.isnan(value)]
        uncertainty = np.concatenate(self._us)
        correct = np.concatenate(self._right).astype(np.float64)
        return SentenceRanking(
            answers=len(each),
            auroc=auroc(uncertainty, correct),
            within=float(np.mean(both)) if both else float("nan"),
            uncertainty=uncertainty,
            correct=correct,
        )
