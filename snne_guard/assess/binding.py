"""Whether a scored set is one that the guard's threshold was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from snne_guard.decision import Calibration, Policy, Threshold
from snne_guard.sampling.options import AnswerSettings
from snne_guard.types import ResponseSet, Sample, Score

__all__ = ["ALLOWED", "TEMPERATURE_UNSET", "Binding", "Standing", "standing"]

TEMPERATURE_UNSET = "temperature_unset"
"""Reason code, and setting of a calibration, where no temperature was taken."""

ALLOWED = frozenset(
    {
        "uncalibrated_answer_temperature",
        "uncalibrated_max_tokens",
        "uncalibrated_model",
        "uncalibrated_stop",
        "uncalibrated_temperature",
        "uncalibrated_top_p",
    }
)
"""Objections that a user may wave aside, since ``u`` still is of the same kind."""

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a scored set stands to what the threshold was made for.

    Attributes:
        covered: Whether an answer may be accepted by the threshold at all.
        reasons: What is not as it was, as reason codes.
        reading: What the assessment says besides: ``certified``, and ``p_wrong`` and
            ``p_wrong_interval`` where they are known.
        threshold: That of a set of as many members, None for the policy's own.
    """

    covered: bool = True
    reasons: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    threshold: Threshold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a guard holds to at each call for the sake of its calibration.

    Attributes:
        calibration: What it decides by.
        settings: Its own settings, by the names in ``bound_settings.BOUND``; the
            model under the name by which it is asked, None if it has no name, or left
            out where it may be any of several.
        answer_settings: What the answer may be drawn with, as far as that is known.
        stages: Members of a set that may be accepted.
        differs: Settings that are not the calibration's, which the user allows.
        lenient: Whether the user allows another model too.
    """

    calibration: Calibration
    settings: Mapping[str, Any]
    answer_settings: AnswerSettings
    stages: frozenset[int]
    differs: tuple[str, ...] = ()
    lenient: bool = False

    def on(
        self, models: AbstractSet[str | None], answer_settings: AnswerSettings
    ) -> Binding:
        """Return the same for a call of models by these names, under these settings."""
        settings = dict(self.settings)
        settings.pop("model", None)
        if len(models) == 1:
            [settings["model"]] = models
        return replace(self, settings=settings, answer_settings=answer_settings)

    @property
    def standing_reasons(self) -> tuple[str, ...]:
        """What every assessment says."""
        return ("calibration_mismatch",) if self.differs else ()

    def limit(self, members: int) -> Threshold:
        """Return the threshold for a set of so many members."""
        found = self.calibration.threshold_of(members)
        return replace(found, method=None) if "method" in self.differs else found

    def objections(
        self, score: Score, members: Sequence[Sample], responses: ResponseSet
    ) -> tuple[str, ...]:
        """Return why a set is none that it was made for, as reason codes.

        Args:
            score: Its score.
            members: Those that were scored.
            responses: The set that they are from.
        """
        reasons: tuple[str, ...] = ()
        used, here = len(members), self.settings
        if used not in self.stages or used != responses.n_requested:
            reasons += ("uncalibrated_set",)
        same = score.method == here["method"] and score.similarity == here["similarity"]
        if not same:
            reasons += ("uncalibrated_method",)
        unset = TEMPERATURE_UNSET in responses.reasons
        if unset != bool(self.calibration.settings.get(TEMPERATURE_UNSET)):
            reasons += ("uncalibrated_temperature",)
        if not self._holds("answer_temperature"):
            reasons += ("uncalibrated_answer_temperature",)
        if not self._holds("top_p"):
            reasons += ("uncalibrated_top_p",)
        if not self._holds("max_tokens"):
            reasons += ("uncalibrated_max_tokens",)
        if not self._holds("stop"):
            reasons += ("uncalibrated_stop",)
        names = {responses.answer.model, *(member.model for member in members)}
        if not all(map(self._knows, names)):
            reasons += ("uncalibrated_model",)
        return reasons

    def _holds(self, name: str) -> bool:
        """Return whether a setting of the answer is as it was, if it is known."""
        if name in self.differs or not self.calibration.binds(name):
            return True
        here = self.answer_settings.get(name, ())
        return not any(self.calibration.differences({name: one}) for one in here)

    def _knows(self, name: str | None) -> bool:
        if "model" in self.differs:
            return True
        if name is not None:
            return self.calibration.is_reply_of(name)
        if "model" not in self.settings:
            return False
        # A reply without a name is as good as the name by which it was asked for.
        asked = self.settings["model"]
        made = self.calibration
        return made.is_model(asked) and made.is_reply_of(asked)


def standing(
    policy: Policy,
    binding: Binding | None,
    score: Score,
    members: Sequence[Sample],
    responses: ResponseSet,
) -> Standing:
    """Return how a scored set stands to what the threshold was made for.

    A threshold without a calibration says itself for which method it was made, and
    nothing else: then only whole sets count as certified.

    Args:
        policy: What is decided by.
        binding: What the guard holds to, None without a calibration.
        score: The score of the set.
        members: Those that were scored.
        responses: The set that they are from.
    """
    threshold, u = policy.threshold, score.uncertainty
    if threshold is None:
        return Standing()
    promised = threshold.certified and threshold.method in {None, score.method}
    if binding is None:
        whole = len(members) >= responses.n_requested and not responses.stopped
        return Standing(reading={"certified": promised and whole and u is not None})
    calibration, used = binding.calibration, len(members)
    objections = binding.objections(score, members, responses)
    reasons = binding.standing_reasons + objections
    reading: dict[str, Any] = {}
    own: Threshold | None = None
    if calibration.cascade is not None:
        own = binding.limit(used)
        reading["threshold"] = own.value
    if not reasons and u is not None:
        reading["certified"] = promised
        reads = calibration.probability.get(used)
        if reads is not None:
            p, low, high = reads(u)
            reading["p_wrong"], reading["p_wrong_interval"] = p, (low, high)
    lenient = binding.lenient and ALLOWED.issuperset(objections)
    return Standing(
        covered=not objections or lenient,
        reasons=reasons,
        reading=reading,
        threshold=own,
    )
