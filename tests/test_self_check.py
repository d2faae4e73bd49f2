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
    Request,
    Response,
)
from snne_guard.errors import ConfigurationError
from snne_guard.self_check import SelfCheck, form_of, read_self_check
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
        ("Yes, but the year is 1912.", None),
        ("Yes. However, it was Lyon.", None),
        ("Yes, partially.", None),
        ("Yes, probably.", None),
        ("Yes, except for the date.", None),
        ("Yes, without a doubt.", 1.0),
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


@pytest.mark.parametrize(
    ("text", "p"),
    [
        ("90", 0.9),
        ("90.", 0.9),
        ("**90**\n", 0.9),
        ("99.5", 0.995),
        ("0", 0.0),
        ("100", 1.0),
        ("90 %", 0.9),
        ("90%", 0.9),
        ("1%", 0.01),
        ("100 percent", 1.0),
        ("0.9", 0.9),
        ("0,9", 0.9),
        (".9", 0.9),
        ("0.0", 0.0),
        ("9/10", 0.9),
        ("1/10", 0.1),
        ("90 out of 100", 0.9),
        ("about 90", 0.9),
        ("~90", 0.9),
        ("I'd say about 85%", 0.85),
        ("Only 20 %.", 0.2),
        ("Yes, 90", 0.9),
        ("90. The sum is easy.", 0.9),
        ("The sum is easy.\n\n90", 0.9),
        ("<think>50, or rather 60</think>90", 0.9),
        ("Likelihood: 90", 0.9),
        ("Confidence score: 90/100", 0.9),
        ("The likelihood that my answer is correct is about 90.", 0.9),
        ("I am 95% confident.", 0.95),
        ("I'm 95% sure", 0.95),
        ('{"probability": 0.85}', 0.85),
        ("\uff19\uff10\uff05", 0.9),  # of full width
        ("\u0669\u0660\u066a", 0.9),  # Arabic
        # The least on one scale, the most on another.
        ("1", None),
        ("1.0", None),
        # Ranges, bounds, two numbers.
        ("80-90", None),
        ("80\u201390 %", None),
        ("between 80 and 90", None),
        ("90 or 95", None),
        ("0.95 (95%)", None),
        ("90 \u00b1 5", None),
        ("at least 90", None),
        (">90", None),
        ("90+", None),
        ("90 on a scale from 0 to 100", None),
        ("9. No row is right", None),
        # Other scales, and what is no likelihood.
        ("105", None),
        ("-5", None),
        ("4/5", None),
        ("9 out of 1000", None),
        ("90 years", None),
        ("$90", None),
        ("1,000", None),
        # The answer, said again.
        ("The answer is 90.", None),
        ("Answer: 90", None),
        ("I'm sure that it is 90%.", None),
        # Negations, questions, refusals, words.
        ("not 90", None),
        ("No, 10", None),
        ("There is a 90% chance that it is wrong.", None),
        ("I am 90% certain that it isn't right.", None),
        ("90% unlikely", None),
        ("90% likely to be inaccurate", None),
        ("There is a 90% chance of a mix-up.", None),
        ("I am 90% sure about Rome", None),
        ("Likelihood of error: 90", None),
        ("Risk of a mix-up: 90", None),
        ("Uncertainty: 90", None),
        ("90?", None),
        ("I cannot give a number.", None),
        ("ninety", None),
        ("Yes", None),
        ("", None),
    ],
)
def test_a_number_is_read_where_it_is_beyond_doubt(text: str, p: float | None) -> None:
    found = read_self_check(Reply(text=text), form="number")
    assert found == (None if p is None else pytest.approx(p))


def test_a_number_that_was_cut_off_says_nothing() -> None:
    reply = Reply(text="9", truncated=True)
    assert read_self_check(reply, form="number") is None


@pytest.mark.parametrize(
    ("form", "prompt"),
    [
        ("yes_no", "How likely is it, from 0 to 100?"),
        ("number", "Is it right? Yes or No."),
        ("number", "How likely is it?"),
        ("number", "From 0 to 100, yes or no?"),
        ("percent", ""),
    ],
)
def test_a_prompt_must_suit_its_form(form: Any, prompt: str) -> None:
    with pytest.raises(ConfigurationError, match="self-check"):
        SelfCheck(form=form, prompt=prompt)


@pytest.mark.parametrize("form", ["yes_no", "number"])
def test_a_form_without_a_prompt_has_its_own(form: Any) -> None:
    assert form_of(SelfCheck(form=form).prompt) == form


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
    "check",
    [
        SelfCheck(form="number"),
        SelfCheck(form="number", prompt="Sicher, von 0 bis 100?", weight=1.0),
        SelfCheck(prompt="Are you 100 % sure, 0 doubts? Yes or No."),
    ],
)
def test_a_calibration_keeps_the_form_of_its_check(check: SelfCheck) -> None:
    made = calibration(self_check=check.prompt, self_check_weight=check.weight)
    options = {"calibration": made, **made.guard_options()}
    assert options["self_check"] == check
    with pytest.raises(ConfigurationError, match="self_check"):
        GuardSettings(**options | {"self_check": True}).check_calibration({})


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
