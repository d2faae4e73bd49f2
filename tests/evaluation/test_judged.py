"""What a recording is judged as is what the guard said that recorded it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.assess.judge import Judge
from snne_guard.decision import Policy
from snne_guard.errors import InputError
from snne_guard.evaluation import Drawn, Question, Recording
from snne_guard.evaluation.calibrating.judged import judged, response_set
from snne_guard.evaluation.recording.drawn import as_fields
from snne_guard.types import ResponseSet, Sample
from tests.support.calibrating import asked

JUDGE = Judge(policy=Policy(), method="snne")

TEXTS = st.sampled_from(["Paris", "Paris, France", "Lyon", "Rome", "in Lyon"])
LOGPROBS = st.none() | st.tuples(st.floats(-9, 0), st.floats(-9, 0))


def replies() -> st.SearchStrategy[Sample]:
    plain = st.builds(
        Sample,
        text=TEXTS,
        token_logprobs=LOGPROBS,
        finish_reason=st.sampled_from(["stop", "length", None]),
        model=st.just("m-1"),
    )
    odd = st.sampled_from(
        [
            Sample(text="", model="m-1"),
            Sample(text="I cannot", refused=True, model="m-1"),
            Sample(text="", reasoned=True, model="m-1"),
            Sample(text="", tool_calls='[{"name":"f"}]', model="m-1"),
        ]
    )
    return st.one_of(plain, plain, plain, odd)


@settings(max_examples=150)
@given(
    answer=replies(),
    samples=st.lists(replies(), min_size=3, max_size=3),
    include=st.booleans(),
    method=st.sampled_from(["snne", "wsnne"]),
)
def test_a_recorded_set_is_judged_as_the_drawn_one(
    answer: Sample, samples: list[Sample], include: bool, method: str
) -> None:
    asked_ = Question.from_dict({"id": "1", "question": "Where?", "context": "Here."})
    n = 3 + int(include)
    # A guard asks for log-probabilities only where its method uses them.
    lost: dict[str, Any] = {} if method == "wsnne" else {"token_logprobs": None}
    drawn = ResponseSet(
        answer=replace(answer, **lost),
        samples=tuple(replace(sample, **lost) for sample in samples),
        n_requested=n,
        include_answer=include,
        question=asked_.prompt,
    )
    judge = replace(JUDGE, method=method)
    expected, _ = judge.judge(drawn, assessment_id="1")
    fields = as_fields(asked_, Drawn(answer=answer, samples=tuple(samples)), {})

    found = judged(
        Recording.from_dict(fields), judge, n=n, include_answer=include, bare=False
    )

    whole = expected.n_used == n and expected.method == method
    u = expected.uncertainty if whole else None
    assert found.uncertainty == (math.inf if u is None else u)
    assert (found.n_used, found.method) == (expected.n_used, expected.method)
    assert ("no_threshold", *found.reasons) == expected.reasons


def test_what_a_guard_cannot_see_keeps_no_answer_from_being_accepted() -> None:
    unlikely = Sample(text="Paris, France", token_logprobs=(-9.0, -9.0))
    drawn = Drawn(answer=unlikely, samples=(unlikely,) * 3)
    fields = as_fields(Question.from_dict({"id": "1", "question": "?"}), drawn, {})
    row = Recording.from_dict(fields)

    def u(method: str) -> float:
        judge = replace(JUDGE, method=method)
        return judged(row, judge, n=4, include_answer=True, bare=True).uncertainty

    # Such agreement shows in log-probabilities alone, and SNNE asks for none.
    assert (u("wsnne"), u("snne")) == (math.inf, 0.0)


def test_the_first_samples_are_taken() -> None:
    row = asked("1", samples=list("bcdef"))
    with_answer = response_set(row, n=3, include_answer=True)
    without = response_set(row, n=3, include_answer=False)
    assert [one.text for one in with_answer.samples] == ["b", "c"]
    assert [one.text for one in without.samples] == ["b", "c", "d"]
    assert not without.include_answer


@pytest.mark.parametrize(
    ("fields", "bare", "told"),
    [
        ({}, False, "1?"),
        ({"context": "Here."}, False, "Context: Here.\n\nQuestion: 1?"),
        ({"context": "Here."}, True, "1?"),
        ({"context": "Here.", "prompt": "Say: 1?"}, False, "Say: 1?"),
        ({"prompt": 3}, False, "1?"),
        ({"question": None}, False, None),
    ],
)
def test_what_the_guard_is_told_of_the_question(
    fields: dict[str, Any], bare: bool, told: str | None
) -> None:
    row = asked("1", **fields)
    assert response_set(row, n=2, include_answer=True, bare=bare).question == told


def test_who_drew_which_reply_is_known_where_one_did() -> None:
    one = response_set(asked("1", drawn={"models": ["m"]}), n=3, include_answer=True)
    assert {reply.model for reply in (one.answer, *one.samples)} == {"m"}
    two = response_set(
        asked("1", drawn={"models": ["m", "k"]}), n=3, include_answer=True
    )
    found, _ = JUDGE.judge(two, assessment_id="1")
    assert "mixed_models" in found.reasons


@pytest.mark.parametrize("words", [["stop"], "stop", ["stop", 3, None]])
@pytest.mark.parametrize("name", ["finish_reasons", "kinds"])
def test_words_that_are_none(name: str, words: object) -> None:
    row = asked("1", drawn={name: words})
    with pytest.raises(
        InputError, match=f"\"{name}\" of recording '1' to be a list of 3"
    ):
        response_set(row, n=3, include_answer=True)
