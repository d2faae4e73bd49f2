"""LettuceDetect, a model that finds unsupported parts of answers, as ``grounding``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class LettuceDetect:
    """The support of documents for sentences, by a ``HallucinationDetector``.

    A sentence is as doubtful as the most certain of the spans that the detector finds
    in it. What does not fit into its model is cut off by it, so give it the passages
    that were retrieved rather than whole documents.

    Args:
        detector: ``lettucedetect.models.inference.HallucinationDetector``, made by you.

    Example:
        >>> class Detector:  # in place of the real one, which loads a model
        ...     def predict(self, *, context, answer, output_format):
        ...         return [{"start": 11, "end": 21, "confidence": 0.75, "text": "..."}]
        >>> LettuceDetect(Detector())(["It is oak.", "It is red."], "It is oak.")
        [1.0, 0.25]
    """

    name = "lettucedetect"

    def __init__(self, detector: Any) -> None:  # noqa: ANN401 - its package has no types
        self._detector = detector

    def __call__(self, sentences: Sequence[str], context: str, /) -> list[float]:
        """Return a number in [0, 1] for each sentence."""
        answer = "\n".join(sentences)
        found = self._detector.predict(
            context=[context], answer=answer, output_format="spans"
        )
        numbers: list[float] = []
        start = 0
        for sentence in sentences:
            end = start + len(sentence)
            within = [s for s in found if s["start"] < end and s["end"] > start]
            doubt = max((float(span["confidence"]) for span in within), default=0.0)
            numbers.append(1 - doubt)
            start = end + 1
        return numbers
