"""From a response set to an assessment: the members that count, score and verdict."""

from __future__ import annotations

import logging
import math
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

from snne_guard.assess.binding import Binding, Standing, standing
from snne_guard.assess.members import ToolRule, members_of, unusable
from snne_guard.assess.needs import check_needs, lacking
from snne_guard.decision import Policy, Verdict
from snne_guard.errors import ConfigurationError
from snne_guard.sampling.agreement import suspect, words_of
from snne_guard.sampling.within import cancelled_by_caller_only
from snne_guard.scorers import Combination, resolve_method, score_members
from snne_guard.scorers.needs import LOGPROB_NEEDS, MAIN_NEEDS, check_relation
from snne_guard.scorers.registry import default_similarity, without_logprobs
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import content_f1, rouge_l, rouge_l_paper
from snne_guard.similarity.growth import Growth
from snne_guard.types import (
    Assessment,
    Method,
    ResponseSet,
    Sample,
    Score,
    Similarity,
)

__all__ = ["Judge", "ToolRule", "unusable"]

logger = logging.getLogger(__name__)

_QUICK: tuple[Similarity, ...] = (rouge_l, rouge_l_paper, content_f1)
"""Similarities that take no time that anyone would notice."""

_PAIR = 2
"""Members without which nothing can differ."""

_UNSCORED = Standing()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What comes of a response set.

    Attributes:
        verdict: What follows.
        reasons: What was not as usual, as reason codes.
        score: None where it was not scored.
        standing: How it stands to what the threshold was made for.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    score: Score | None = None
    standing: Standing = _UNSCORED


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Scores response sets and decides on them; holds no state.

    Attributes:
        policy: What follows from an uncertainty.
        method: Name of a method, a method of the user's own, or ``"auto"``: WSNNE
            where log-probabilities come, else SNNE.
        similarity: Name of a similarity, one of the user's own, or None for the
            method's default.
        tau: Temperature of the similarity's softmax, None for the method's default.
        tool_calls: Whether answers that call tools are scored, and by which policy.
        temperature: What samples are drawn at.
        binding: What is held to for the sake of a calibration, None without one.

    Raises:
        ConfigurationError: If a name is unknown, or a threshold is set for a method
            that has no bounds.
    """

    policy: Policy
    method: str | Method = "auto"
    similarity: str | Similarity | None = None
    tau: float | None = None
    tool_calls: ToolRule = "skip"
    temperature: float = 1.0
    binding: Binding | None = None

    def __post_init__(self) -> None:
        if not callable(self.tool_calls):
            _check_tool_rule("tool_calls", self.tool_calls)
        if self.tau is not None and not _is_tau(self.tau):
            msg = f"tau must be a number above 0, or None; got {self.tau!r}"
            raise ConfigurationError(msg)
        method = self.resolve(logprobs=True)
        check_needs(method, self.relation_for())
        if self.tool_calls != "skip":
            check_relation(method, self._relation_of(calls=True))
        if self._has_threshold and method.bounds(2) is None:
            msg = (
                f"method {method.name!r} has no bounds, so its score has no place in "
                "[0, 1] that a threshold could be compared with; leave threshold=None"
            )
            raise ConfigurationError(msg)

    @property
    def may_withhold(self) -> bool:
        """Whether an answer can fail to reach the application."""
        rule = self.tool_calls
        # A function that says nothing of it may return any policy.
        own = not isinstance(rule, str) and getattr(rule, "may_withhold", True)
        return self.policy.may_withhold or bool(own)

    @property
    def _has_threshold(self) -> bool:
        policies = [self.policy]
        if isinstance(self.tool_calls, Policy):
            policies.append(self.tool_calls)
        return any(policy.threshold is not None for policy in policies)

    @property
    def standing_reasons(self) -> tuple[str, ...]:
        """What every assessment says for the sake of a calibration."""
        return () if self.binding is None else self.binding.standing_reasons

    def for_answer(self, answer: Sample) -> Judge:
        """Return the judge of this answer: one that calls tools may have its own.

        Raises:
            ConfigurationError: If the user's function says neither ``"skip"`` nor
                ``"score"`` nor a ``Policy``.
            ModelCancelledError: If it cancelled itself.
        """
        rule = self.tool_calls
        if isinstance(rule, str):
            return self
        if answer.tool_calls is None:
            return replace(self, tool_calls="skip")
        if callable(rule):
            with cancelled_by_caller_only("the tool_calls function cancelled itself"):
                rule = rule(answer)
            _check_tool_rule("tool_calls' result", rule)
        if not isinstance(rule, Policy):
            return replace(self, tool_calls=rule)
        least = max(rule.min_samples, self.policy.min_samples)
        policy = replace(rule, min_samples=least)
        # A threshold of their own is not that of the calibration.
        same = rule.threshold == self.policy.threshold
        binding = self.binding if same else None
        return replace(self, policy=policy, tool_calls="score", binding=binding)

    @property
    def wants_logprobs(self) -> bool:
        """Whether token log-probabilities would be used if they came."""
        return bool(self.resolve(logprobs=True).needs & LOGPROB_NEEDS)

    @property
    def light(self) -> bool:
        """Whether scoring runs no code but the library's own."""
        # JSON of any size and depth takes its time, and a model much more of it.
        compare = self.relation_for().similarity
        quick = any(compare is own for own in _QUICK)
        ours = isinstance(self.method, str | Combination)
        return ours and self.tool_calls == "skip" and quick

    def relation_for(self, members: Sequence[Sample] = ()) -> Relation:
        """Return what compares these members."""
        calls = any(member.tool_calls is not None for member in members)
        return self._relation_of(calls=calls or self.tool_calls == "score")

    def _relation_of(self, *, calls: bool) -> Relation:
        if self.similarity is None and calls:
            return Relation.of("structured")
        method = self.resolve(logprobs=True)
        return Relation.of(self.similarity, default=default_similarity(method))

    def resolve(self, *, logprobs: bool) -> Method:
        """Return the method that runs with or without log-probabilities.

        Raises:
            ConfigurationError: If the name is unknown.
        """
        return resolve_method(self.method, logprobs=logprobs)

    def judge(
        self,
        responses: ResponseSet,
        *,
        assessment_id: str,
        run_id: str | None = None,
        settle_logprobs: Callable[[bool], bool] = bool,
        growth: Growth | None = None,
    ) -> tuple[Assessment, Verdict]:
        """Score a response set and decide.

        Args:
            responses: The answer and its samples.
            assessment_id: Id of the assessment.
            run_id: The LangChain run that it belongs to.
            settle_logprobs: Told whether any log-probabilities came; returns whether
                this guard counts on them.
            growth: What was compared already in this call.

        Returns:
            The assessment, and the verdict with how to carry it out.
        """
        used, left_out = self.members(responses)
        found = self._found(used, responses, settle_logprobs, growth)
        base = self.record(
            responses, assessment_id=assessment_id, run_id=run_id, verdict=found.verdict
        )
        score = found.score
        assessment = replace(
            base,
            scored=tuple(map(words_of, used or ())) if score else (),
            matrix=score.matrix if score else None,
            method=score.method if score else None,
            score=score.value if score else None,
            uncertainty=score.uncertainty if score else None,
            n_used=len(used or ()),
            reasons=tuple(dict.fromkeys((*base.reasons, *left_out, *found.reasons))),
            **found.standing.reading,
        )
        return assessment, found.verdict

    def _found(
        self,
        used: Sequence[Sample] | None,
        responses: ResponseSet,
        settle_logprobs: Callable[[bool], bool],
        growth: Growth | None,
    ) -> _Found:
        """Return what comes of the members that count, None where the answer does not.

        The other arguments are those of ``judge``.
        """
        reasons = self._unscored_reasons(used, responses)
        if used is None or reasons:
            return _Found(verdict=self.policy.unscored(), reasons=reasons)
        score = self.score(used, responses, settle_logprobs, growth)
        if score is None:
            reasons = lacking(self.resolve(logprobs=True), used, responses)
            reasons += ("scoring_failed",)
            return _Found(verdict=self.policy.unscored(), reasons=reasons)
        stands = standing(self.policy, self.binding, score, used, responses)
        verdict = self.policy.scored(
            score.uncertainty,
            method=score.method,
            covered=stands.covered,
            threshold=stands.threshold,
        )
        reasons = score.reasons + stands.reasons
        return _Found(verdict=verdict, reasons=reasons, score=score, standing=stands)

    def _unscored_reasons(
        self, used: Sequence[Sample] | None, responses: ResponseSet
    ) -> tuple[str, ...]:
        """Return why members are not to be scored, as reason codes."""
        # A set that was stopped has all the members that were to decide.
        least = _PAIR if responses.stopped else self.policy.min_samples
        if used is None:
            return ()  # what the answer lacks was said already
        if len(used) < least:
            return ("too_few_samples",)
        samples = used[int(responses.include_answer) :]
        if suspect(samples, temperature=self.temperature):
            return ("suspect_agreement",)
        return ()

    def record(
        self,
        responses: ResponseSet,
        *,
        assessment_id: str,
        run_id: str | None = None,
        verdict: Verdict,
        reasons: tuple[str, ...] = (),
    ) -> Assessment:
        """Return the assessment of a call whose set is not scored."""
        threshold = self.policy.threshold
        missing = ("no_threshold",) if threshold is None else self.standing_reasons
        return Assessment(
            id=assessment_id,
            answer=responses.answer,
            samples=responses.samples,
            threshold=None if threshold is None else threshold.value,
            decision=verdict.decision,
            n_requested=responses.n_requested,
            reasons=(*missing, *responses.reasons, *reasons),
            cost=responses.cost,
            question=responses.question,
            run_id=run_id,
        )

    def members(
        self, responses: ResponseSet
    ) -> tuple[list[Sample] | None, tuple[str, ...]]:
        """Return the members that count, None where the answer itself does not.

        With them the reasons, as codes, for which others left the set.
        """
        return members_of(responses, tool_calls=self.tool_calls)

    def score(
        self,
        members: Sequence[Sample],
        responses: ResponseSet,
        settle_logprobs: Callable[[bool], bool],
        growth: Growth | None = None,
    ) -> Score | None:
        """Return the score of members, None where scoring failed.

        Args:
            members: Those that count, at least one.
            responses: The set that they are from.
            settle_logprobs: As for ``judge``.
            growth: What was compared already in this call.
        """
        try:
            return self._score(members, responses, settle_logprobs, growth)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - anyone's code
            # What was paid for must not be lost to it; its text is not logged. Nothing
            # is awaited here, so a cancellation is its own and never the caller's.
            logger.warning("scoring failed with %s", type(error).__name__)
            return None

    def _score(
        self,
        members: Sequence[Sample],
        responses: ResponseSet,
        settle_logprobs: Callable[[bool], bool],
        growth: Growth | None,
    ) -> Score:
        means = [member.mean_logprob for member in members]
        known = [mean for mean in means if mean is not None]
        method = self.resolve(
            logprobs=not self.wants_logprobs or settle_logprobs(bool(known))
        )
        reasons: tuple[str, ...] = ()
        instead = without_logprobs(method)
        if instead is not None and len(known) < len(means):
            method = instead
            reasons = ("logprobs_missing",)
        if self.wants_logprobs and any(member.misaligned for member in members):
            reasons += ("logprobs_misaligned",)
        relation = self.relation_for(members)
        if growth is not None:
            relation = relation.through(growth.over)
        # In the paper's set the answer is no member, but some methods look at it.
        beside = not responses.include_answer and bool(method.needs & MAIN_NEEDS)
        shown = [responses.answer, *members] if beside else members
        score = score_members(
            [words_of(member) for member in shown],
            token_logprobs=[member.token_logprobs for member in shown],
            question=responses.question,
            method=method,
            relation=relation,
            tau=1.0 if self.tau is None else self.tau,
            delivered=responses.include_answer or beside,
            include_answer=responses.include_answer,
        )
        return replace(score, reasons=(*score.reasons, *reasons))


def _check_tool_rule(name: str, value: object) -> None:
    if not isinstance(value, Policy) and value not in {"skip", "score"}:
        msg = f"{name} must be 'skip', 'score' or a Policy; got {value!r}"
        raise ConfigurationError(msg)


def _is_tau(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return 0 < float(value) < math.inf
