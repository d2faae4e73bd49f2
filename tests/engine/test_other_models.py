"""Samples of other models, on hand-fed replies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.cost import Prices
from snne_guard.engine import (
    Draw,
    GuardState,
    Outcome,
    Request,
    Response,
    arun,
    is_partial,
    run,
)
from snne_guard.engine.call import guarded_call
from snne_guard.errors import ConfigurationError
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment, Reply
from snne_guard.views import VIEWS
from tests.support.calibrations import calibration
from tests.support.senders import Scripted, ScriptedSender, feed, response

KEY = "a model"


def asking(*takes: str, names: Any = ("b",), **options: Any) -> Request:
    """Return a request of a guard with other models."""
    return Request(
        settings=GuardSettings(other_models=names, **options),
        state=GuardState(),
        parameters=frozenset(takes),
        keys=(KEY,),
        question="Where?",
        model="a",
    )


def play(
    request: Request, own: list[Scripted], others: Mapping[str, Scripted]
) -> Outcome:
    """Run a call; the answer is the first of the model's own replies."""

    def script(draw: Draw, place: int) -> Scripted:
        if draw.role == "self_check":
            return replace(response("Yes"), p_correct=1.0)
        if draw.other_model is not None:
            return others[draw.other_model]
        return own[0] if draw.role == "answer" else own[1 + place]

    return feed(request, script)


def assess(
    request: Request, own: list[Scripted], others: Mapping[str, Scripted]
) -> Assessment:
    return play(request, own, others).assessment


PARIS: list[Scripted] = ["Paris"] * 9


# -- Drawing ---------------------------------------------------------------------------


def test_each_other_model_draws_one_sample_at_its_own_settings() -> None:
    first = next(guarded_call(asking("n", names=["b", "c"])))
    assert isinstance(first, tuple)
    assert [(draw.role, draw.n, draw.other_model) for draw in first] == [
        ("answer", 1, None),
        ("sample", 2, None),
        ("sample", 1, "b"),
        ("sample", 1, "c"),
    ]
    assert [draw.temperature for draw in first] == [None, 1.0, None, None]


def test_the_guard_pays_for_n_replies_in_all() -> None:
    found = assess(asking("n", self_check=True), PARIS, {"b": "Paris"})
    assert [one.other_model for one in found.samples] == [None, None, "b"]
    assert (found.n_requested, found.n_used) == (4, 4)
    assert sum(one.replies for one in found.requests) == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 2}, "n, with 1 other model, to be a whole number of at least 3, got 2"),
        ({"n": 3, "names": ["b", "c"]}, "at least 4, got 3"),
        (
            {"n": 4, "names": ["b", "c"], "self_check": True},
            "with 2 other models and a self-check, .* at least 5, got 4",
        ),
        ({"n": 3, "include_answer": False}, "at least 4, got 3"),
        ({"names": ["b", "b"]}, "different names, got b, b"),
        ({"names": [7]}, "name of another model to be str, got int"),
        ({"names": "bc"}, "other_models to be list or tuple, got str"),
        ({"method": "wsnne"}, "'wsnne' needs log-probabilities"),
        ({"method": "perplexity"}, "'perplexity' needs log-probabilities"),
        ({"min_replies": 6}, "at most 5, got 6"),
        ({"prices": {"b": 3}}, "prices to be Prices or None, got int"),
        ({"prices": {"b": Prices(prompt=-1, completion=1)}}, "price prompt"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], words: str) -> None:
    options = {"other_models": options.pop("names", ["b"]), **options}
    with pytest.raises(ConfigurationError, match=words):
        GuardSettings(**options)


def test_views_are_for_own_samples() -> None:
    request = asking(names=["b", "c"], views=["plain", "examples"])
    first = next(guarded_call(request))
    assert isinstance(first, tuple)
    drawn = [(draw.view and draw.view.name, draw.other_model) for draw in first[1:]]
    assert drawn == [("plain", None), ("examples", None), (None, "b"), (None, "c")]
    assert VIEWS["plain"] is first[1].view


def test_what_stands_at_the_provider_alone_is_sent_to_no_other_model() -> None:
    assert not is_partial({"previous_response_id": None})
    found = assess(replace(asking(), partial=True), PARIS, {})
    assert found.n_used == 4
    assert found.reasons == ("other_model_failed", "no_threshold")
    assert not any(one.other_model for one in found.requests)


# -- The set ---------------------------------------------------------------------------


def likely(text: str, **fields: Any) -> Reply:
    logprobs = (-0.1,)
    return Reply(text=text, token_logprobs=logprobs, finish_reason="stop", **fields)


def test_more_than_one_model_is_scored_by_snne() -> None:
    own: list[Scripted] = [likely("Paris")] * 9
    found = assess(asking("logprobs"), own, {"b": likely("Paris")})
    assert found.method == "snne"
    assert found.reasons == ("no_threshold",)  # no log-probabilities are missed
    assert assess(asking("logprobs"), own, {"b": "Paris"}).reasons == found.reasons
    first = next(guarded_call(asking("logprobs")))
    assert isinstance(first, tuple)
    # The model's own are asked for: they tell of a cache.
    assert [draw.logprobs for draw in first] == [True] * 4 + [False]


def test_an_other_answer_makes_the_model_s_own_less_certain() -> None:
    alike, apart = [
        assess(asking(), PARIS, {"b": text}).uncertainty for text in ("Paris", "Rome")
    ]
    assert alike is not None
    assert apart is not None
    assert alike < apart
    assert play(asking(), PARIS, {"b": "Rome"}).delivery == "answer"


def test_a_cache_is_looked_for_among_own_samples_alone() -> None:
    tale = "A long tale"
    rare = Reply(text=tale, token_logprobs=(-9.0,) * 3, finish_reason="stop")
    fresh: list[Scripted] = [rare, *map(likely, ("One", "Two", "Three"))]
    found = assess(asking("logprobs"), fresh, {"b": rare})
    assert "suspect_agreement" not in found.reasons
    own: list[Scripted] = [likely("One"), rare, rare, rare]
    again = assess(asking("logprobs"), own, {"b": likely("One")})
    assert (again.score, "suspect_agreement" in again.reasons) == (None, True)


def test_one_id_twice_is_a_cache_of_own_replies_alone() -> None:
    def said(response_id: str) -> Reply:
        return Reply(text="Paris", finish_reason="stop", response_id=response_id)

    own: list[Scripted] = [said(f"r{place}") for place in range(4)]
    assert assess(asking(), own, {"b": said("r0")}).n_used == 5
    cached: list[Scripted] = [said("r0")] * 4
    found = assess(asking(), cached, {"b": said("r9")})
    assert (found.score, found.reasons[-1]) == (None, "no_threshold")
    assert {"suspect_agreement", "too_few_samples"} <= {*found.reasons}


def test_only_own_replies_are_of_one_model() -> None:
    def by(model: str) -> Reply:
        return Reply(text="Paris", finish_reason="stop", model=model)

    own: list[Scripted] = [by("a-1")] * 9
    assert "mixed_models" not in assess(asking(), own, {"b": by("b-1")}).reasons
    mixed: list[Scripted] = [by("a-1"), by("b-1"), *own]
    assert "mixed_models" in assess(asking(), mixed, {"b": by("b-1")}).reasons


# -- Faults ----------------------------------------------------------------------------

FAULTS: dict[str, Scripted] = {
    "fails": RuntimeError("no"),
    "fails for a moment": ConnectionError(),
    "late": TimeoutError(),
    "refuses": Reply(text="I cannot", refused=True),
    "cut off": Reply(text="Par", truncated=True),
    "unreadable": Reply(text="", unreadable=True),
    "calls tools": Reply(text="", tool_calls='[{"args":{},"name":"f"}]'),
    "says nothing": Response(replies=()),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("takes", [["n"], []])
def test_one_that_fails_is_one_reply_less(fault: Scripted, takes: list[str]) -> None:
    request = asking(*takes, names=["b", "c"], threshold=0.9)
    found = assess(request, PARIS, {"b": fault, "c": "Paris"})
    assert found.reasons == ("other_model_failed",)
    assert (found.n_requested, found.n_used) == (5, 4)
    # It is not made up for, and takes nothing away.
    assert [one.other_model for one in found.samples if one.text == "Paris"] == [
        None,
        None,
        "c",
    ]
    assert found.decision == "accept"


def test_its_failure_keeps_no_own_sample_from_being_asked_for_again() -> None:
    request = asking("n")

    def script(draw: Draw, place: int) -> Scripted:
        del place
        if draw.other_model:
            return ConnectionError()
        return "Paris"

    found = feed(request, script, per_request=1).assessment
    assert found.n_used == 4
    assert "samples_failed" not in found.reasons


def test_an_other_reply_without_own_samples_is_not_enough() -> None:
    own: list[Scripted] = ["Paris", *[RuntimeError("no")] * 9]
    for names in (["b"], ["b", "c"]):
        request = asking(names=names, threshold=0.9, min_replies=2)
        found = assess(request, own, {"b": "Paris", "c": "Paris"})
        assert (found.score, found.decision) == (None, "flag")
        assert "too_few_samples" in found.reasons


def test_its_options_and_rejections_are_not_the_model_s() -> None:
    odd = replace(
        response("Paris"),
        temperature_set=False,
        greedy=True,
        rejected=frozenset({"temperature"}),
    )
    found = assess(asking(), PARIS, {"b": odd})
    assert (found.n_used, found.reasons) == (5, ("no_threshold",))


# -- Structured answers ----------------------------------------------------------------


def calling(**arguments: Any) -> Reply:
    calls = json.dumps([{"args": arguments, "name": "Sum"}])
    return Reply(text="", tool_calls=calls, finish_reason="stop")


CALL = calling(total=1.0, who="Ann")
TEXT = '{"who": "Ann", "total": 1}'


@pytest.mark.parametrize(
    ("own", "other", "same"),
    [
        (CALL, TEXT, True),
        (CALL, f"```json\n{TEXT}\n```", True),
        (CALL, replace(CALL, text="I add them up."), True),
        (CALL, TEXT.replace("1", "2"), False),
        (CALL, "Ann has 1.", False),
        (CALL, "[1]", False),
        (TEXT, CALL, True),
        (TEXT, replace(CALL, text="I add them up."), True),
        (TEXT, calling(total=2, who="Ann"), False),
        (TEXT, TEXT, True),
        (TEXT, "1", False),
    ],
)
def test_values_are_compared_whatever_their_form(
    own: Scripted, other: Scripted, same: bool
) -> None:
    request = replace(asking(n=3), structured=True)
    found = assess(request, [own] * 9, {"b": other})
    assert found.uncertainty is not None
    assert (found.uncertainty < 0.05) is same, found.uncertainty


def test_a_call_of_a_tool_is_no_form_of_an_answer() -> None:
    request = replace(asking(tool_calls="score"), tools_bound=True, schema=True)
    found = assess(request, [TEXT] * 9, {"b": CALL})
    assert "other_model_failed" in found.reasons


# -- Cost ------------------------------------------------------------------------------

PRICE = Prices(prompt=1e5, completion=0)  # ten tokens are 1


@pytest.mark.parametrize(
    ("prices", "other", "total"),
    [
        (None, None, None),
        (PRICE, None, None),
        ({"a": PRICE, "b": Prices(prompt=1e4, completion=0)}, 0.1, 4.1),
        ({"a": PRICE}, None, None),
        ({"b": PRICE}, 1.0, None),
    ],
)
def test_each_model_has_its_own_price(
    prices: Any, other: float | None, total: float | None
) -> None:
    said = response(Reply(text="Paris", finish_reason="stop", model="b-1"))
    found = assess(asking(prices=prices), PARIS, {"b": said})
    assert found.cost.prompt_tokens == 50
    assert found.own_cost.prompt_tokens == 40
    assert found.cost.money == (None if total is None else pytest.approx(total))
    assert found.to_metadata()["other_models"] == {
        "b": {
            "prompt_tokens": 10,
            "cached_tokens": 0,
            "completion_tokens": 1,
            "reasoning_tokens": 0,
            "money": other,
            "models": ["b-1"],
        }
    }


def test_without_other_models_the_record_has_none() -> None:
    assert "other_models" not in assess(asking(names=[]), PARIS, {}).to_metadata()


# -- Drivers ---------------------------------------------------------------------------


def flaky(failing: str | None) -> ScriptedSender:
    failed = list[Draw]()

    def script(draw: Draw, place: int) -> Scripted:
        del place
        if draw.other_model == failing and draw.role == "sample" and not failed:
            failed.append(draw)
            return ConnectionError()
        return "Paris"

    return ScriptedSender(script)


@pytest.mark.parametrize(
    ("retry", "others", "failing", "used"),
    [
        (True, (), "b", 4),
        (False, ("b",), "b", 5),
        (False, ("b",), None, 4),
        (True, (), None, 5),
    ],
)
async def test_each_model_is_asked_again_by_one_layer(
    retry: bool, others: tuple[str, ...], failing: str | None, used: int
) -> None:
    request = replace(asking(), retry=retry, others_retried=frozenset(others))
    assert run(request, flaky(failing)).assessment.n_used == used
    assert (await arun(request, flaky(failing))).assessment.n_used == used


def test_they_are_asked_at_the_same_time_and_late_ones_are_left_behind() -> None:
    sender = ScriptedSender(
        lambda *_: "Paris", seconds=lambda draw: 3.0 if draw.other_model else 0.3
    )
    found = run(asking(sample_timeout=1.2), sender).assessment
    assert sender.most_open == 5
    assert (found.n_used, found.reasons) == (4, ("other_model_failed", "no_threshold"))


# -- Calibration -----------------------------------------------------------------------

MADE = calibration(other_models=["b"], other_reply_models={"b": ("b-1",)})


def said(model: str | None, text: str = "Paris") -> Reply:
    return Reply(text=text, finish_reason="stop", model=model)


@pytest.mark.parametrize(
    ("own", "other", "covered"),
    [
        ("m", said("b-1"), True),
        ("m", said("b-2"), False),
        ("m", said("m"), False),
        ("m", said(None), False),
        ("b-1", said("b-1"), False),
        ("m", RuntimeError("no"), False),
        ("m", TimeoutError(), False),
    ],
)
def test_a_calibration_holds_for_its_models(
    own: str, other: Scripted, covered: bool
) -> None:
    request = asking(calibration=MADE)
    found = assess(request, [said(own)] * 9, {"b": other})
    assert ("uncalibrated" in found.reasons) is not covered
    assert (found.decision == "accept") is covered
