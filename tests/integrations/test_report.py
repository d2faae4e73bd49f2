"""What tracing tools are told: numbers, codes and a cost, and texts when asked."""

from __future__ import annotations

from snne_guard import Assessment
from snne_guard.types import Cost, Sample
from snne_guard_integrations._report import explained, label, texts

PRIVATE = "the capital is Paris"
FOUND = Assessment(
    id="an id",
    answer=Sample(text=PRIVATE),
    samples=(Sample(text="it is Lyon"),),
    question=PRIVATE,
    method="snne",
    uncertainty=0.25,
    decision="accept",
    n_requested=3,
    n_used=2,
    reasons=("samples_failed", "no_threshold"),
    cost=Cost(
        calls=2, prompt_tokens=30, completion_tokens=12, seconds=1.234, money=0.000012
    ),
)


def test_the_explanation_has_every_reason_and_the_cost_and_no_text() -> None:
    assert explained(FOUND) == (
        "reasons: samples_failed, no_threshold; 2 of 3 answers compared by snne; "
        "cost: 2 requests, 30 + 12 tokens, 1.23 s, 0.000012 in money"
    )


def test_the_label_is_the_decision_only_where_there_is_a_number() -> None:
    assert label(FOUND) == "accept"
    assert label(Assessment(id="1", answer=None, decision="accept")) == "unscored"
    assert label(Assessment(id="1", answer=None, uncertainty=0.2)) is None


def test_texts_are_those_of_the_call() -> None:
    assert texts(FOUND) == {
        "question": PRIVATE,
        "answer": PRIVATE,
        "samples": ["it is Lyon"],
    }
