"""Every method that a guard can feed decides; the others are refused at once."""

import math
from typing import Any

import pytest

from snne_guard.assess import Judge
from snne_guard.decision import Policy
from snne_guard.errors import ConfigurationError
from snne_guard.scorers.method import FunctionMethod
from snne_guard.types import MethodInputs
from tests.assess.judging import LYON, PARIS, certain, judged, limited

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


@pytest.mark.parametrize(
    ("options", "light"),
    [
        ({"method": "lex_sim"}, True),
        ({"method": "dse", "similarity": "exact"}, False),
        ({"method": own("similarity")}, False),
    ],
)
def test_what_may_take_long_is_known(options: dict[str, Any], *, light: bool) -> None:
    assert Judge(policy=Policy(), **options).light is light
