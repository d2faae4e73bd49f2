"""One way of scoring for all recordings of a calibration, as a guard will have it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snne_guard.decision import Policy, Threshold
from snne_guard.errors import ConfigurationError, InputError, ScoringError
from snne_guard.evaluation.calibrating.judged import (
    Judged,
    StrictJudge,
    judged,
    response_set,
)
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.sampling.agreement import words_of
from snne_guard.scorers import COMBINED, Combination, fit_combination
from snne_guard.scorers.combination import part_values
from snne_guard.scorers.materials import Materials
from snne_guard.types import FloatArray, IntArray, Method, Similarity

__all__ = ["OnProgress", "Scoring", "check_rounds", "early_stages", "settled_method"]

OnProgress = Callable[[int, int], object]
"""Told how much is done, and of how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How recordings are scored.

    Attributes:
        n: Members of the set.
        include_answer: Whether the delivered answer is one of them.
        bare: Whether the guard is told the question alone.
        judge: What scores them.
    """

    n: int
    include_answer: bool
    bare: bool
    judge: StrictJudge

    @classmethod
    def of(
        cls,
        *,
        n: int,
        include_answer: bool,
        bare: bool,
        temperature: float,
        method: str | Method,
        similarity: str | Similarity | None,
        tau: float | None,
    ) -> Scoring:
        """Return what a guard with these options does.

        Raises:
            ConfigurationError: An option makes no sense.
        """
        judge = StrictJudge(
            # A threshold, so that a method without limits ends here.
            policy=Policy(
                threshold=Threshold.fixed(0.0), min_samples=max(2, math.ceil(n / 2))
            ),
            method=method,
            similarity=similarity,
            tau=tau,
            temperature=temperature,
        )
        return cls(n=n, include_answer=include_answer, bare=bare, judge=judge)

    def stage(self, members: int) -> Scoring:
        """Return the scoring of a set that ends after a round of so many members."""
        policy = replace(self.judge.policy, min_samples=2)
        return replace(self, n=members, judge=replace(self.judge, policy=policy))

    def uncertainties(
        self,
        recordings: Sequence[Recording],
        on_progress: OnProgress | None = None,
    ) -> tuple[FloatArray, Counter[str]]:
        """Return ``u`` of each, ``inf`` where it can never be accepted, and why.

        Args:
            recordings: Those to score.
            on_progress: Told how many are scored, and of how many.

        Raises:
            InputError: None can be scored; what a recording says of itself is odd.
            ScoringError: The similarity or the method failed.
            MissingExtraError: A package that one of them needs is not installed.
        """
        found: list[Judged] = []
        for row in recordings:
            found.append(self._judged(row))
            if on_progress is not None:
                on_progress(len(found), len(recordings))
        u = np.array([one.uncertainty for one in found], dtype=np.float64)
        why = Counter(
            code for one in found if math.isinf(one.uncertainty) for code in one.reasons
        )
        if len(u) and np.isinf(u).all():
            told = ", ".join(f"{code} {count}" for code, count in why.most_common())
            msg = f"no recording could be scored as a guard would score it: {told}"
            raise InputError(msg)
        return u, why

    def _judged(self, recording: Recording) -> Judged:
        try:
            return judged(
                recording,
                self.judge,
                n=self.n,
                include_answer=self.include_answer,
                bare=self.bare,
            )
        except ScoringError as error:
            msg = f"recording {recording.id!r} could not be scored: {error}"
            raise ScoringError(msg) from error

    def combined(self, recordings: Sequence[Recording], correct: IntArray) -> Scoring:
        """Return the scoring by a combination that is learnt from graded answers.

        Answers that cannot be compared are left out of what it is learnt from.

        Args:
            recordings: Those that it is learnt from, and no threshold is tested on.
            correct: ``(n,)`` their grades.

        Raises:
            InputError: There are too few, or all are right or all are wrong.
        """
        size = len(COMBINED)
        blank = Combination(
            parts=COMBINED,
            coefficients=(0.0,) * size,
            intercept=0.0,
            ranges=((0.0, 1.0),) * size,
        )
        judge = replace(self.judge, method=blank)
        scoring = replace(self, judge=judge)
        found = [scoring.parts(row) for row in recordings]
        kept = [place for place, parts in enumerate(found) if parts is not None]
        values = [parts for parts in found if parts is not None]
        made = fit_combination(values, correct[kept])
        return replace(self, judge=replace(judge, method=made))

    def parts(self, recording: Recording) -> list[float] | None:
        """Return what each part of a combination says of a recording's set.

        None where the set is not whole.
        """
        responses = response_set(
            recording, n=self.n, include_answer=self.include_answer, bare=self.bare
        )
        members, _ = self.judge.members(responses)
        if members is None or len(members) < self.n:
            return None
        materials = Materials(
            [words_of(member) for member in members],
            token_logprobs=[member.token_logprobs for member in members],
            question=responses.question,
            delivered=self.include_answer,
        )
        inputs = materials.inputs(
            self.judge.resolve(logprobs=True),
            self.judge.relation_for(members),
            tau=1.0 if self.judge.tau is None else self.judge.tau,
        )
        return part_values(COMBINED, inputs)

    @property
    def combination(self) -> dict[str, Any] | None:
        """The combination that it scores by, as JSON has it; None if by none."""
        method = self.judge.method
        return method.to_dict() if isinstance(method, Combination) else None


def settled_method(
    method: str | Method, recordings: Sequence[Recording]
) -> str | Method:
    """Return what ``"auto"`` means: WSNNE where all log-probabilities are known."""
    if method != "auto":
        return method
    known = all(
        row.main_logprobs and row.token_logprobs and all(row.token_logprobs)
        for row in recordings
    )
    return "wsnne" if known else "snne"


def check_rounds(rounds: Sequence[int]) -> Sequence[int]:
    """Return rounds, of which there must be two at least.

    Raises:
        ConfigurationError: There are fewer.
    """
    if len(rounds) < 2:  # noqa: PLR2004 - one round is no plan
        msg = (
            "rounds must be members of the set after each of at least two rounds, "
            f"such as (3, 5, 10); got {rounds!r}"
        )
        raise ConfigurationError(msg)
    return rounds


def early_stages(
    scoring: Scoring, recordings: Sequence[Recording], rounds: Sequence[int]
) -> dict[int, FloatArray]:
    """Return ``u`` of the sets as they are after each round but the last."""
    return {
        members: scoring.stage(members).uncertainties(recordings)[0]
        for members in rounds[:-1]
    }
