"""The certificate at work: a call that stopped decides as it would have in the end."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.assess import Assessor, Brief, Judge, Session, Stopping
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.sampling import Draw, Reply, SamplingPlan
from snne_guard.similarity.growth import Growth
from snne_guard.types import Assessment, FloatArray, MethodInputs, ResponseSet, Sample

WORDS = ["Paris", "in Paris", "Lyon", "in Lyon", "Rome", "the city of Rome"]
TEXTS = st.sampled_from([*WORDS, "Paris", "Paris", "", None])  # None: it fails


def call(
    texts: Sequence[str | None],
    *,
    policy: Policy,
    rounds: Sequence[int],
    stop: bool = True,
    **judging: Any,
) -> tuple[Assessment, Verdict]:
    """Make one call in which the samples say, or fail, what they are told to."""
    judge = Judge(policy=policy, **judging)
    logprob = judging.get("method") == "wsnne"

    def sample(text: str) -> Sample:
        mean = -0.1 * (1 + len(text) % 7)
        return Sample(text=text, token_logprobs=(mean,) if logprob else None)

    def send(draw: Draw) -> Reply:
        text = texts[draw.index + 1]
        if text is None:
            raise ValueError
        return Reply(samples=(sample(text),))

    assessor = Assessor(
        plan=SamplingPlan(n=len(texts), rounds=rounds),
        judge=judge,
        stopping=Stopping(judge=judge) if stop else None,
    )
    brief = Brief(context=contextvars.copy_context())
    with Session(assessor, brief, send) as session:
        return session.finish(sample(texts[0] or "Paris"))


@given(
    texts=st.lists(TEXTS, min_size=6, max_size=6),
    value=st.sampled_from([-1.0, 0.0, 0.2, 0.4, 0.55, 0.7, 0.85, 1.0]),
    tau=st.sampled_from([None, 0.3]),
    method=st.sampled_from(["snne", "wsnne"]),
    refuse=st.booleans(),
)
def test_it_decides_as_the_whole_set_does(
    texts: list[str | None],
    value: float,
    tau: float | None,
    method: str,
    refuse: bool,
) -> None:
    policy = Policy(
        threshold=Threshold.fixed(value),
        refuse_above=max(0.8, value) if refuse else None,
        min_samples=3,
    )
    options: dict[str, Any] = {
        "policy": policy,
        "rounds": (3, 4, 5, 6),
        "tau": tau,
        "method": method,
    }
    stopped, verdict = call(texts, **options)
    _, expected = call(texts, stop=False, **options)
    assert verdict == expected
    assert stopped.n_requested + stopped.cost.samples_saved == 6
    if stopped.uncertainty is not None:  # what is reported agrees with it
        assert (stopped.decision == "accept") == (stopped.uncertainty <= value)


POLICY = Policy(threshold=Threshold.fixed(0.5), min_samples=5)
TEN: dict[str, Any] = {"rounds": (5, 8, 10)}


def test_agreement_is_accepted_and_disagreement_refused_early() -> None:
    found, _ = call(["Paris"] * 10, policy=POLICY, **TEN)
    assert (found.decision, found.n_used, found.uncertainty) == ("accept", 8, 0.0)
    found, _ = call([f"w{i}" for i in range(10)], policy=POLICY, **TEN)
    assert (found.decision, found.n_used) == ("flag", 8)
    assert found.uncertainty == pytest.approx(1.0)
    assert found.reasons == ("stopped_early",)


def test_a_threshold_that_nothing_or_everything_meets_needs_no_more() -> None:
    for value, decision in ((-1.0, "flag"), (1.0, "accept")):
        policy = Policy(threshold=Threshold.fixed(value), min_samples=5)
        found, _ = call(WORDS + ["x"] * 4, policy=policy, **TEN)
        assert (found.decision, found.n_used) == (decision, 5)


def test_fewer_than_min_samples_settle_nothing() -> None:
    policy = Policy(threshold=Threshold.fixed(1.0), min_samples=5)
    found, _ = call(["Paris"] * 10, policy=policy, rounds=(3, 10))
    assert found.n_used == 10
    texts = ["Paris", "", "", "Paris", "Paris", *["Paris"] * 5]
    found, _ = call(texts, policy=policy, rounds=(5, 10))
    assert (found.n_requested, found.n_used) == (10, 8)


def test_a_pair_of_thresholds_is_one_verdict_or_none() -> None:
    def policy(refuse_above: float) -> Policy:
        return Policy(
            threshold=Threshold.fixed(0.2), refuse_above=refuse_above, min_samples=5
        )

    different = [f"w{i}" for i in range(10)]
    found, verdict = call(different, policy=policy(0.5), **TEN)
    assert (found.n_used, verdict.action) == (8, "refuse")
    found, verdict = call(different, policy=policy(0.99), **TEN)
    assert (found.n_used, verdict.action) == (10, "refuse")


def test_what_a_function_decides_is_not_foreseen() -> None:
    policy = Policy(
        threshold=Threshold.fixed(0.5),
        on_uncertain=lambda _found: "flag",
        min_samples=5,
    )
    found, verdict = call([f"w{i}" for i in range(10)], policy=policy, **TEN)
    assert (found.n_used, verdict.action) == (10, "ask")
    found, verdict = call(["Paris"] * 10, policy=policy, **TEN)
    assert (found.n_used, verdict.action) == (8, "deliver")


def test_a_threshold_certified_for_another_method_accepts_nothing_early() -> None:
    # A missing sample without log-probabilities would end in SNNE, and be uncertain.
    threshold = Threshold(
        value=0.9, kind="error_rate", status="certified", level=0.1, method="wsnne"
    )
    policy = Policy(threshold=threshold, min_samples=5)
    found, _ = call(["Paris"] * 10, policy=policy, method="wsnne", **TEN)
    assert (found.n_used, found.decision) == (10, "accept")
    policy = Policy(threshold=Threshold.fixed(0.9), min_samples=5)
    found, _ = call(["Paris"] * 10, policy=policy, method="wsnne", **TEN)
    assert (found.n_used, found.decision) == (5, "accept")


def responses(texts: Sequence[str], logprob: float) -> ResponseSet:
    made = [Sample(text=text, token_logprobs=(logprob,)) for text in texts]
    return ResponseSet(answer=made[0], samples=tuple(made[1:]))


def test_agreement_that_more_of_it_would_expose_is_not_cut_short() -> None:
    judge = Judge(policy=POLICY, method="snne")
    stopping = Stopping(judge=judge)

    def enough(logprob: float, missing: int) -> bool:
        return stopping.enough(
            responses(["Paris"] * 8, logprob), missing=missing, growth=Growth()
        )

    assert enough(-1.0, 1)
    assert not enough(-2.3, 1)  # 7 are 1e-6 or more probable still, 8 are not
    assert not enough(-9.0, 1)  # as it is, it could not be chance


class Own:
    """A method of a user's own with limits that may be wrong or fail."""

    name, needs, white_box, source = "own", frozenset({"similarity"}), False, ""

    def __init__(self, limits: tuple[float, float] | Exception | None) -> None:
        self.limits = limits

    def compute(self, inputs: MethodInputs, /) -> float:
        return float(1 - inputs.similarity.mean())

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
        del n, tau
        return 0.0, 1.0

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float:
        del n, tau
        return value

    def partial_bounds(
        self, inputs: MethodInputs, missing: int, /
    ) -> list[tuple[float, float]] | None:
        del inputs
        if isinstance(self.limits, Exception):
            raise self.limits
        return None if self.limits is None else [self.limits] * (missing + 1)


def test_a_method_of_a_users_own_may_know_its_limits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def used(limits: tuple[float, float] | Exception | None) -> int:
        return call(WORDS + WORDS[:4], policy=POLICY, method=Own(limits), **TEN)[
            0
        ].n_used

    assert used((0.6, 0.7)) == 5
    assert used((0.4, 0.6)) == 10
    assert used(None) == 10
    with caplog.at_level(logging.WARNING, logger="snne_guard"):
        assert used(ValueError("Paris")) == 10
    assert "a stopping rule failed with ValueError" in caplog.text
    assert "Paris" not in caplog.text


def test_a_method_that_compares_no_answers_may_know_its_limits() -> None:
    class Longest(Own):
        needs = frozenset({"answers"})

        def compute(self, inputs: MethodInputs, /) -> float:
            return max(map(len, inputs.answers or ())) / 100

        def partial_bounds(
            self, inputs: MethodInputs, missing: int, /
        ) -> list[tuple[float, float]] | None:
            assert inputs.similarity.shape == (5, 5)
            assert np.isnan(inputs.similarity).all()
            return super().partial_bounds(inputs, missing)

    found, _ = call(WORDS + WORDS[:4], policy=POLICY, method=Longest((0.0, 0.4)), **TEN)

    assert (found.n_used, found.matrix) == (5, None)


def test_what_a_method_does_not_know_may_be_anything() -> None:
    for value, n_used in ((-1.0, 5), (1.0, 10)):  # u may come out as None
        policy = Policy(threshold=Threshold.fixed(value), min_samples=5)
        found, _ = call(WORDS + WORDS[:4], policy=policy, method=Own(None), **TEN)
        assert found.n_used == n_used


def test_certificate_and_rule_may_both_stop() -> None:
    judge = Judge(policy=POLICY)
    known = responses(WORDS[:5], -0.1)

    def enough(**options: Any) -> bool:
        stopping = Stopping(judge=judge, **options)
        return stopping.enough(known, missing=5, growth=Growth())

    assert not enough()
    assert enough(rule=lambda score, missing: score.n == missing)
    assert Stopping(judge=judge).light
    assert not Stopping(judge=judge, rule=lambda _score, _missing: True).light


def test_an_asymmetric_similarity_is_within_the_limits_too() -> None:
    def leaning(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        del question
        n = len(texts)
        return np.triu(np.ones((n, n))) * 0.5 + np.eye(n) * 0.5

    policy = Policy(threshold=Threshold.fixed(0.9), min_samples=3)
    options: dict[str, Any] = {"policy": policy, "rounds": (3, 4, 5, 6)}
    texts = [f"w{i}" for i in range(6)]
    stopped = call(texts, similarity=leaning, **options)
    whole = call(texts, similarity=leaning, stop=False, **options)
    assert stopped[1] == whole[1]
