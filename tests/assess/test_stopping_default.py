"""Early stopping with the default similarity: its certificate knows of the anchor."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.assess import Judge, Stopping
from snne_guard.decision import Policy, Threshold
from snne_guard.scorers import snne, uncertainty
from snne_guard.similarity import content_f1
from snne_guard.similarity.growth import Growth
from snne_guard.types import ResponseSet, Sample
from tests.assess.test_stopping import call

WORDS = ["Paris", "in Paris", "Lyon", "not Paris", "Rome", "the city of Rome"]
SETS = st.lists(st.sampled_from([*WORDS, "Paris"]), min_size=6, max_size=6)
VALUES = st.sampled_from([0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


def responses(texts: list[str], **options: Any) -> ResponseSet:
    answer, *samples = (Sample(text=text) for text in texts)
    return ResponseSet(answer=answer, samples=tuple(samples), **options)


@settings(max_examples=300)
@given(texts=SETS, value=VALUES, seen=st.integers(2, 5), alike=st.booleans())
def test_it_stops_only_where_every_outcome_leads_to_one_verdict(
    texts: list[str], value: float, seen: int, alike: bool
) -> None:
    policy = Policy(threshold=Threshold.fixed(value), min_samples=2)
    judge = Judge(policy=policy, method="snne")
    known, missing = texts[:seen], 6 - seen
    stopped = Stopping(judge=judge).enough(
        responses(known), missing=missing, growth=Growth()
    )
    if not stopped:
        return
    extra = [known[0] if alike else f"w{i}x" for i in range(missing)]
    outcomes = [[*known, *some[:m]] for some in (texts[seen:], extra) for m in range(7)]
    verdicts = set[bool]()
    for outcome in outcomes:
        u = uncertainty(snne(content_f1(outcome), anchor=0.7), len(outcome))
        assert u is not None
        verdicts.add(u <= value)
    assert len(verdicts) == 1


@given(texts=SETS, value=VALUES, often=st.booleans())
def test_it_decides_as_the_whole_set_does(
    texts: list[str], value: float, often: bool
) -> None:
    policy = Policy(threshold=Threshold.fixed(value), min_samples=2)
    options: dict[str, Any] = {
        "policy": policy,
        "rounds": (2, 3, 4, 5, 6) if often else (3, 6),
        "method": "snne",
    }
    stopped, verdict = call(texts, **options)
    whole, expected = call(texts, stop=False, **options)
    assert verdict == expected
    assert stopped.decision == whole.decision


@pytest.mark.parametrize(("similarity", "settled"), [(None, True), ("rouge_l", False)])
def test_an_answer_that_stands_alone_is_settled_earlier_than_in_the_paper(
    similarity: str | None, *, settled: bool
) -> None:
    # The best that can come is one more that is like all others. By hand, n = 7:
    # u is 0.688 at least with 0.7 of the weight on the answer, and 0.262 without.
    policy = Policy(threshold=Threshold.fixed(0.4), min_samples=2)
    judge = Judge(policy=policy, method="snne", similarity=similarity)
    known = responses(["Lyon", *["Paris"] * 5])
    found = Stopping(judge=judge).enough(known, missing=1, growth=Growth())
    assert found is settled


@pytest.mark.parametrize("include", [True, False])
def test_rounds_score_with_the_weight_of_the_whole_set(*, include: bool) -> None:
    texts = ["Lyon", "Paris", "Paris", "Paris"]
    judge = Judge(policy=Policy(), method="snne")
    given_set = responses(texts, include_answer=include)
    used, _ = judge.members(given_set)
    assert used is not None
    scores = [judge.score(used, given_set, bool, growth) for growth in (None, Growth())]
    members = texts if include else texts[1:]
    anchor = 0.7 if include else 0.0
    for found in scores:
        assert found is not None
        assert found.anchor == anchor
        assert found.value == snne(content_f1(members), anchor=anchor)
