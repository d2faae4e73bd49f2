"""The uncertainty that a guard would have found, had it drawn what was recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from snne_guard.assess.judge import Judge
from snne_guard.assess.needs import lacking
from snne_guard.errors import InputError, ScoringError, SnneGuardError
from snne_guard.evaluation.calibrating.drawn_alike import reply_models
from snne_guard.evaluation.recording.drawn import of_kind
from snne_guard.evaluation.recording.questions import Question
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.similarity.growth import Growth
from snne_guard.types import ResponseSet, Sample, Score

__all__ = ["Judged", "StrictJudge", "judged", "response_set"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a guard would have found.

    Attributes:
        uncertainty: ``u`` in [0, 1]; ``inf`` where the guard could never accept the
            answer, since a member of its set is missing or cannot be compared.
        n_used: Members that were scored.
        method: The method that ran, None where none did.
        reasons: Why it could not be accepted, and what else was not as usual.
    """

    uncertainty: float
    n_used: int
    method: str | None
    reasons: tuple[str, ...]


class StrictJudge(Judge):
    """A guard's judge for whom a similarity that fails is an error.

    A guard accepts no answer that it could not score. In a calibration such answers
    would be missing among the accepted ones for another reason than ``u``: where the
    similarity works again, a guard would accept answers that were never looked at.
    """

    def score(
        self,
        members: Sequence[Sample],
        responses: ResponseSet,
        settle_logprobs: Callable[[bool], bool],
        growth: Growth | None = None,
    ) -> Score | None:
        """Return the score of members, None where log-probabilities are missing.

        Raises:
            ScoringError: The similarity or the method failed.
            MissingExtraError: A package that one of them needs is not installed.
        """
        if lacking(self.resolve(logprobs=True), members, responses):
            return None
        try:
            return self._score(members, responses, settle_logprobs, growth)
        except SnneGuardError:
            raise
        except Exception as error:
            # Its message may hold a text that was compared.
            msg = f"the similarity or the method raised {type(error).__name__}"
            raise ScoringError(msg) from error


def judged(
    recording: Recording, judge: Judge, /, *, n: int, include_answer: bool, bare: bool
) -> Judged:
    """Judge a recording by the very code that a guard runs.

    Args:
        recording: With at least as many samples as the set needs.
        judge: Of a guard.
        n: Members of the set.
        include_answer: Whether the delivered answer is one of them.
        bare: As for ``response_set``.
    """
    responses = response_set(recording, n=n, include_answer=include_answer, bare=bare)
    if not judge.wants_logprobs:
        # A guard does not ask for them then, so that it cannot see by them either
        # which samples agree more than chance allows.
        responses = _without_logprobs(responses)
    found, _ = judge.judge(responses, assessment_id=recording.id)
    expected = judge.resolve(logprobs=True).name
    reasons = tuple(code for code in found.reasons if code != "no_threshold")
    u = found.uncertainty
    if u is None or found.n_used != n or found.method != expected:
        u = math.inf
    return Judged(
        uncertainty=u, n_used=found.n_used, method=found.method, reasons=reasons
    )


def response_set(
    recording: Recording, /, *, n: int, include_answer: bool, bare: bool = False
) -> ResponseSet:
    """Return what a guard would have drawn: the first members of a recording.

    Args:
        recording: With at least as many samples as the set needs.
        n: Members of the set.
        include_answer: Whether the delivered answer is one of them.
        bare: Whether the guard is told the question alone, by its option ``question``;
            else it is told the whole message, with the context in front of it.

    Raises:
        InputError: What the recording says of its replies is none of it.

    Example:
        >>> row = Recording(
        ...     id="1", question="2+2?", main_answer="4", samples=("4", "5")
        ... )
        >>> [one.text for one in response_set(row, n=2, include_answer=True).samples]
        ['4']
    """
    samples = recording.samples[: n - int(include_answer)]
    drawn: Any = recording.extra.get("drawn")
    about: dict[str, Any] = (
        cast("dict[str, Any]", drawn) if isinstance(drawn, dict) else {}
    )
    count = len(recording.samples) + 1
    names = reply_models(recording)
    # Who drew which reply is not recorded where several did.
    models = names * count if len(names) == 1 else [*names, *([None] * count)]
    replies = [
        of_kind(
            Sample(text=text, token_logprobs=logprobs, finish_reason=end, model=model),
            kind,
        )
        for text, logprobs, end, model, kind in zip(
            (recording.main_answer, *samples),
            (recording.main_logprobs, *(recording.token_logprobs or (None,) * count)),
            _words(about, "finish_reasons", recording),
            models,
            _words(about, "kinds", recording),
            strict=False,
        )
    ]
    return ResponseSet(
        answer=replies[0],
        samples=tuple(replies[1:]),
        n_requested=n,
        include_answer=include_answer,
        question=_question(recording, bare=bare),
    )


def _without_logprobs(responses: ResponseSet) -> ResponseSet:
    answer, *samples = (
        replace(reply, token_logprobs=None)
        for reply in (responses.answer, *responses.samples)
    )
    return replace(responses, answer=answer, samples=tuple(samples))


def _question(recording: Recording, *, bare: bool) -> str | None:
    if bare or recording.question is None:
        return recording.question
    shown = recording.extra.get("prompt")
    return Question(
        id=recording.id,
        text=recording.question,
        context=recording.context,
        shown=shown if isinstance(shown, str) else None,
    ).prompt


def _words(
    about: dict[str, Any], name: str, recording: Recording
) -> Sequence[str | None]:
    """Return a word for the answer and each sample, None where none is known."""
    count = len(recording.samples) + 1
    value: object = about.get(name)
    if value is None:
        return [None] * count
    words = cast("list[object]", value) if isinstance(value, list) else []
    if len(words) != count or not all(isinstance(w, str | None) for w in words):
        msg = (
            f'expected "{name}" of recording {recording.id!r} to be a list of '
            f"{count} texts or nulls, the answer's first"
        )
        raise InputError(msg)
    return cast("list[str | None]", words)
