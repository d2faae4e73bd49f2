"""Every method that a guard can feed decides; the others are refused at once."""

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from snne_guard.assess import Judge
from snne_guard.decision import Policy
from snne_guard.errors import ConfigurationError
from snne_guard.scorers import Combination
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import rouge_l, structured
from snne_guard.similarity.growth import Growth
from snne_guard.types import MethodInputs, Sample
from tests.assess.judging import CALL, LYON, OTHER_CALL, PARIS, certain, judged, limited

LIKELY, UNLIKELY = certain("Paris", -0.1), certain("Lyon", -2.0)


def own(*needs: str, **options: Any) -> FunctionMethod:
    def largest(inputs: MethodInputs) -> float:
        return float(max(getattr(inputs, needs[0])))

    options.setdefault("function", largest)
    return FunctionMethod(
        name="own", source="a test", needs=frozenset(needs), **options
    )


def test_groups_of_equal_answers_decide() -> None:
    judge = Judge(policy=limited(0.5), method="dse", similarity="exact")

    found, _ = judged(PARIS, PARIS, LYON, judge=judge)

    entropy = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert found.method == "dse"
    assert found.score == pytest.approx(entropy, abs=1e-12)
    assert found.uncertainty == pytest.approx(entropy / math.log(3), abs=1e-12)
    assert found.decision == "flag"
    assert judged(PARIS, PARIS, judge=judge)[0].decision == "accept"


def test_without_log_probabilities_se_is_dse() -> None:
    judge = Judge(policy=limited(1.0), method="se", similarity="exact")

    whole, _ = judged(LIKELY, UNLIKELY, judge=judge)
    partly, _ = judged(LIKELY, LYON, judge=judge)

    assert (whole.method, whole.reasons) == ("se", ())
    assert (partly.method, partly.reasons) == ("dse", ("logprobs_missing",))
    assert partly.uncertainty == pytest.approx(1.0)


def test_a_method_that_nothing_stands_in_for_is_not_scored_without_them() -> None:
    judge = Judge(policy=Policy(), method="ne")

    whole, _ = judged(LIKELY, UNLIKELY, judge=judge)
    partly, _ = judged(LIKELY, LYON, judge=judge)

    assert whole.method == "ne"
    assert whole.score == pytest.approx(1.05)
    assert (whole.uncertainty, whole.reasons) == (None, ("no_threshold", "no_bounds"))
    assert partly.score is None
    assert partly.reasons == ("no_threshold", "logprobs_missing", "scoring_failed")


def test_a_similarity_that_fails_is_not_blamed_on_log_probabilities() -> None:
    def failing(*_texts: object, **_options: object) -> Any:
        raise RuntimeError

    for method in ("auto", own("similarity"), own("similarity", "mean_logprobs")):
        members = (LIKELY, UNLIKELY) if method != "auto" else (PARIS, LYON)
        judge = Judge(policy=Policy(), method=method, similarity=failing)
        found, _ = judged(*members, judge=judge)
        assert found.reasons == ("no_threshold", "scoring_failed")


@pytest.mark.parametrize("include_answer", [True, False])
def test_a_method_may_look_at_the_answer_whether_or_not_it_is_a_member(
    *, include_answer: bool
) -> None:
    judge = Judge(policy=Policy(min_samples=2), method=own("main_logprobs"))

    found, _ = judged(
        LIKELY, UNLIKELY, UNLIKELY, judge=judge, include_answer=include_answer
    )

    assert found.score == -0.1
    assert found.n_used == 2 + include_answer
    assert found.scored == ("Paris", "Lyon", "Lyon")[1 - include_answer :]


def test_what_no_guard_knows_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="'own' needs hidden_states, which no"):
        Judge(policy=Policy(), method=own("hidden_states", "similarity"))


def test_a_similarity_must_be_able_to_give_what_the_method_needs() -> None:
    with pytest.raises(ConfigurationError, match="mean the same for method 'dse'"):
        Judge(policy=Policy(), method="dse", similarity="rouge_l")


def test_a_method_without_bounds_takes_no_threshold() -> None:
    with pytest.raises(ConfigurationError, match="'ne' has no bounds"):
        Judge(policy=limited(0.5), method="ne")


COMBINED = Combination(
    parts=("snne",), coefficients=(1.0,), intercept=0.0, ranges=((0.0, 1.0),)
)


@pytest.mark.parametrize(
    ("options", "light"),
    [
        ({"method": "lex_sim"}, True),
        ({"method": COMBINED}, True),
        ({"method": "dse", "similarity": "exact"}, False),
        ({"method": own("similarity")}, False),
    ],
)
def test_what_may_take_long_is_known(options: dict[str, Any], *, light: bool) -> None:
    assert Judge(policy=Policy(), **options).light is light


@pytest.mark.parametrize("method", ["vote_share", "dse", "num_set"])
def test_clusters_are_formed_of_calls_of_tools(method: str) -> None:
    def scored(_answer: Sample) -> Literal["score"]:
        return "score"

    for rule in ("score", scored):
        judge = Judge(policy=Policy(), method=method, tool_calls=rule)
        alike, _ = judged(CALL, CALL, CALL, judge=judge)
        unlike, _ = judged(CALL, OTHER_CALL, CALL, judge=judge)
        assert (alike.uncertainty, alike.method) == (0.0, method)
        assert unlike.uncertainty is not None
        assert unlike.uncertainty > 0


@pytest.mark.parametrize("rule", ["score", Policy(), lambda _answer: "score"])
def test_what_cannot_score_calls_of_tools_is_refused_at_once(rule: Any) -> None:
    with pytest.raises(ConfigurationError, match="of entailment for method 'luq'"):
        Judge(policy=Policy(), method="luq", tool_calls=rule)


def test_a_method_with_a_name_of_ours_is_not_replaced() -> None:
    mine = replace(own("similarity", function=lambda _: 0.0), name="se")
    found, _ = judged(PARIS, LYON, judge=Judge(policy=Policy(), method=mine))
    needy = replace(own("mean_logprobs"), name="se")
    missing, _ = judged(PARIS, LYON, judge=Judge(policy=Policy(), method=needy))

    assert (found.method, found.score) == ("se", 0.0)
    assert missing.reasons == ("no_threshold", "logprobs_missing", "scoring_failed")


@pytest.mark.parametrize(
    ("need", "answer", "samples", "missing"),
    [
        ("main_logprobs", PARIS, (UNLIKELY, UNLIKELY), True),
        ("main_logprobs", LIKELY, (LYON, LYON), False),
        ("sample_mean_logprobs", PARIS, (UNLIKELY, UNLIKELY), False),
        ("sample_mean_logprobs", LIKELY, (UNLIKELY, LYON), True),
        ("token_logprobs", LIKELY, (UNLIKELY, LYON), True),
    ],
)
@pytest.mark.parametrize("include_answer", [True, False])
def test_log_probabilities_are_missed_where_the_method_looks(
    need: str,
    answer: Sample,
    samples: tuple[Sample, ...],
    *,
    missing: bool,
    include_answer: bool,
) -> None:
    def failing(_inputs: object) -> float:
        raise RuntimeError

    method = replace(own(need), function=failing)
    judge = Judge(policy=Policy(min_samples=2), method=method)
    found, _ = judged(answer, *samples, judge=judge, include_answer=include_answer)

    assert ("logprobs_missing" in found.reasons) is missing
    assert found.reasons[-1] == "scoring_failed"


def test_a_similarity_with_a_name_of_ours_may_take_long() -> None:
    def slow(texts: Any, /, *, question: str | None = None) -> Any:
        return rouge_l(texts, question=question)

    slow.__qualname__ = "rouge_l"
    assert not Judge(policy=Policy(), method="snne", similarity=slow).light


def test_what_was_compared_in_this_call_tells_the_same_meaning_too() -> None:
    relation = Relation.of("structured").through(Growth().over)
    calls = [str(CALL.tool_calls), str(OTHER_CALL.tool_calls)] * 2

    assert relation.similarity is not structured
    assert (
        relation.equivalent(calls, None).tolist()
        == np.equal.outer(calls, calls).tolist()
    )
    np.testing.assert_array_equal(relation.compare(calls, None), structured(calls))


def test_a_method_that_compares_no_answers_has_no_matrix() -> None:
    def failing(*_texts: object, **_options: object) -> Any:
        raise RuntimeError

    judge = Judge(policy=Policy(), method="ne", similarity=failing)

    found, _ = judged(LIKELY, UNLIKELY, judge=judge)

    assert found.score == pytest.approx(1.05)
    assert found.scored == ("Paris", "Lyon")
    assert found.matrix is None
