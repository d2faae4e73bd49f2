"""The self-check: how it is read, what it weighs, and when it is asked."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import score
from snne_guard.cost import Cost
from snne_guard.engine import (
    Draw,
    GuardState,
    Outcome,
    ProviderCapabilities,
    Request,
    Response,
)
from snne_guard.errors import ConfigurationError
from snne_guard.self_check import SelfCheck, read_self_check
from snne_guard.settings import GuardSettings
from snne_guard.types import Reply
from tests.support.calibrations import calibration
from tests.support.senders import feed

SHARES = st.floats(0, 1)


def entry(token: str, p: float, **others: float) -> dict[str, Any]:
    top = [{"token": name, "logprob": math.log(q)} for name, q in others.items()]
    return {"token": token, "logprob": math.log(p), "top_logprobs": top}


# -- Reading ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "p"),
    [
        ("Yes", 1.0),
        ("no.", 0.0),
        ("**YES**", 1.0),
        ("Yes - the sum is right.", 1.0),
        ("yes\n\nBoth are twelve.", 1.0),
        ("No: 7 is odd.", 0.0),
        ("Final answer: **Yes**", 1.0),
        ("Seven is odd. No!", 0.0),
        ("7 + 5 = 12\nVerdict: yes", 1.0),
        ("<think>No, wait. Is it no?</think>yes", 1.0),
        # In doubt: both words, a denial, a question, prose around the word.
        ("Yes and no", None),
        ("No. The right answer is yes.", None),  # of another question
        ("Yes, yes", None),
        ("Yes, that was wrong.", None),
        ("Yes, I was mistaken.", None),
        ("I'd rather not answer. Yes", None),
        ("Yes?", None),
        ("Is it odd? Yes", None),
        ("You won't hear me say yes", None),
        ("Scarcely a yes", None),
        ("No doubt about it.", None),
        ("<think>It may be so. Yes", None),  # cut off in its thoughts
        ("Perhaps.\n\nUser: Yes", None),
        ("I believe it is correct.", None),
        ("yesterday", None),
        ("", None),
        # Other scripts: their labels, and none of their letters beside the word.
        ("答案:Yes", 1.0),
        ("उत्तर: No।", 0.0),
        ("الإجابة: Yes\u200f", 1.0),
        ("这不是Yes", None),
        ("Yesではありません", None),  # it is not Yes
        ("no\u0301", None),  # with an accent
        ("pi\u1ea1no", None),
        ("\N{NUMERO SIGN}", None),
    ],
)
def test_a_reply_says_yes_or_no_or_nothing(text: str, p: float | None) -> None:
    assert read_self_check(Reply(text=text)) == p


@pytest.mark.parametrize("word", ["Ja", "Oui", "Sí", "是", "はい", "نعم", "हाँ"])
def test_the_words_of_other_languages_say_nothing(word: str) -> None:
    assert read_self_check(Reply(text=word)) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"truncated": True},
        {"refused": True},
        {"unreadable": True},
        {"tool_calls": "[]"},
    ],
)
def test_a_reply_that_is_none_says_nothing(fields: Any) -> None:
    assert read_self_check(Reply(text="Yes", **fields)) is None


@pytest.mark.parametrize(
    ("text", "entries", "p"),
    [
        # Yes among Yes and No, in every spelling; other words do not count.
        ("Yes", [entry("Yes", 0.5, Yes=0.5, yes=0.1, No=0.2, Maybe=0.2)], 0.75),
        ("No", [entry(" no", 0.6, No=0.2)], 0.0),
        # Without alternatives the rest may be other spellings: the word counts.
        ("No", [entry("No", 0.4)], 0.0),
        ("Yes", [entry("Yes", 0.4)], 1.0),
        # The word's own place, neither in thoughts nor in another word.
        (
            "<think>No</think>No",
            [
                entry("<think>", 1),
                entry("No", 1, No=1),
                entry("</think>", 1),
                entry("No", 0.6, Yes=0.2),
            ],
            0.25,
        ),
        (
            "No, a novel",
            [
                entry("No", 0.6, Yes=0.2),
                entry(", a", 1),
                entry(" no", 1, no=1),
                entry("vel", 1),
            ],
            0.25,
        ),
        # Tokens that do not spell the word: the word itself counts.
        ("Yes", [entry("Y", 0.9), entry("es", 0.9)], 1.0),
        ("Yes", "no entries", 1.0),
        ("Yes", [{"token": "Yes", "logprob": None}], 1.0),
    ],
)
def test_log_probabilities_say_how_sure(text: str, entries: Any, p: float) -> None:
    assert read_self_check(Reply(text=text), entries) == pytest.approx(p)


# -- What it weighs --------------------------------------------------------------------


@given(SHARES, SHARES, SHARES, st.floats(0.01, 100))
def test_the_uncertainty_is_bounded_and_monotone(
    disagreement: float, p: float, other: float, weight: float
) -> None:
    check = SelfCheck(weight=weight)
    u = check.uncertainty(disagreement=disagreement, p_correct=p)
    assert 0 <= u <= 1
    low, high = sorted((p, other))
    assert check.uncertainty(
        disagreement=disagreement, p_correct=high
    ) <= check.uncertainty(disagreement=disagreement, p_correct=low)
    low, high = sorted((disagreement, other))
    assert check.uncertainty(disagreement=low, p_correct=p) <= check.uncertainty(
        disagreement=high, p_correct=p
    )


@pytest.mark.parametrize(
    "given",
    [{"weight": 0}, {"weight": math.inf}, {"prompt": "Richtig? Ja oder Nein."}],
)
def test_a_check_that_makes_no_sense_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"expected the self-check's"):
        SelfCheck(**given)


@pytest.mark.parametrize(
    ("self_check", "u"), [(None, 0.0), (1.0, 0.0), ("unknown", 0.5 / 3), (0.0, 1 / 3)]
)
def test_score_takes_a_self_check(self_check: Any, u: float) -> None:
    found = score(["Paris", "Paris"], self_check=self_check)
    assert found.uncertainty == pytest.approx(u)
    assert found.disagreement == 0.0
    assert score(["Paris"], self_check=self_check).uncertainty is None


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, "yes", True])
def test_score_refuses_what_is_no_probability(p: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected self_check"):
        score(["Paris", "Paris"], self_check=p)


# -- A call ----------------------------------------------------------------------------


def checked(p: Any, *, asked: list[Draw] | None = None, **options: Any) -> Outcome:
    """Return how a call ends whose answer and samples all are Paris."""

    def come_of(draw: Draw) -> Any:
        if asked is not None:
            asked.append(draw)
        if draw.role != "self_check":
            return "Paris"
        if isinstance(p, Exception):
            return p
        word = Reply(text="Yes", finish_reason="stop")
        return Response(replies=(word,), cost=Cost(calls=1, attempts=1), p_correct=p)

    request = Request(
        settings=GuardSettings(**{"self_check": True, "threshold": 0.3, **options}),
        state=GuardState(),
        capabilities=ProviderCapabilities(),
    )
    return feed(request, lambda draw, _: come_of(draw))


@pytest.mark.parametrize("schedule", ["concurrent", "answer_first"])
def test_a_doubted_answer_is_refused_though_all_agree(schedule: Any) -> None:
    outcome = checked(0.0, on_uncertain="refuse", schedule=schedule)
    assert (outcome.delivery, outcome.assessment.reasons) == ("refusal", ())


@pytest.mark.parametrize(
    ("p", "log"),
    [(None, ""), (ConnectionError("Paris"), "ConnectionError"), (TimeoutError(), "")],
)
def test_a_check_that_fails_counts_as_half_and_loses_nothing(
    p: Any, log: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = checked(p).assessment
    assert log in caplog.text
    assert "Paris" not in caplog.text
    assert made.reasons == ("self_check_unknown",)
    assert (made.self_check, made.n_used) == (0.5, 4)
    assert made.uncertainty == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"n": 2}, "n, with a self-check, to be a whole number of at least 3"),
        ({"self_check": "yes"}, "self_check to be bool or SelfCheck, got str"),
        ({"min_replies": 5}, "at most 4"),
    ],
)
def test_options_that_leave_no_set_are_refused(options: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        GuardSettings(**{"self_check": True, **options})


def test_a_check_that_would_come_too_late_is_not_asked() -> None:
    asked: list[Draw] = []
    made = checked(0.9, asked=asked, sample_timeout=1e-9).assessment
    assert "self_check" not in [draw.role for draw in asked]
    assert "self_check_unknown" in made.reasons


# -- A calibration ---------------------------------------------------------------------


def test_a_calibration_is_bound_to_its_check() -> None:
    made = calibration(self_check=SelfCheck().prompt, self_check_weight=0.5)
    assert GuardSettings.given(calibration=made).self_check == SelfCheck()
    GuardSettings.given(calibration=made).check_calibration({})
    for other in (False, SelfCheck(weight=1.0), SelfCheck(prompt="Right? Yes or No.")):
        with pytest.raises(ConfigurationError, match="self_check"):
            GuardSettings.given(calibration=made, self_check=other).check_calibration(
                {}
            )


@pytest.mark.parametrize(
    ("p", "certified"), [(0.9, True), (None, True), (ConnectionError("down"), False)]
)
def test_no_guarantee_is_made_where_the_check_failed(p: Any, certified: Any) -> None:
    made = calibration(self_check=SelfCheck().prompt, self_check_weight=0.5)
    options = {**made.guard_options(), "calibration": made, "threshold": None}
    assessment = checked(p, **options).assessment
    assert assessment.certified is certified
    assert ("uncalibrated" in assessment.reasons) is not certified
    assert (assessment.decision == "accept") is certified
