"""Views: what they make of a conversation and a reply, and who is drawn in them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from snne_guard.cost import Prices
from snne_guard.engine import Draw, GuardState, Outcome, Request
from snne_guard.errors import ConfigurationError
from snne_guard.settings import GuardSettings
from snne_guard.types import Reply
from snne_guard.views import VIEWS, View, final_answer
from tests.support.calibrations import calibration
from tests.support.senders import feed

ALL = ["plain", "examples", "reasoning"]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def turn(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def contents(messages: Any) -> list[Any]:
    return [
        each["content"] if isinstance(each, dict) else each.content for each in messages
    ]


# -- What they make of a conversation --------------------------------------------------

TALKS: list[list[Any]] = [
    [
        turn("developer", "Be brief."),
        turn("user", [{"type": "text", "text": "What is it?"}, IMAGE]),
        turn("assistant", "Hello."),
        {**turn("user", "Where?"), "name": "Ann"},
    ],
    [
        SystemMessage("Be brief."),
        HumanMessage("Hi."),
        AIMessage("Hello."),
        HumanMessage("Where?", name="Ann"),
    ],
]


@pytest.mark.parametrize("talk", TALKS)
def test_a_view_changes_a_copy(talk: list[Any]) -> None:
    before = copy.deepcopy(talk)
    plain, examples, reasoning = (VIEWS[name].rewritten(talk) for name in ALL)
    assert plain == talk == before
    # Unrelated turns stand between the system message and the conversation.
    assert (examples[0], examples[-3:]) == (talk[0], talk[1:])
    assert [each["role"] for each in examples[1:-3]] == ["user", "assistant"] * 3
    assert reasoning[:-1] == talk[:-1]
    assert contents(reasoning)[-1].startswith("Where?\n\nFirst think step by step")
    last = reasoning[-1]
    assert (last["name"] if isinstance(last, dict) else last.name) == "Ann"


def test_images_and_context_stay() -> None:
    given = [turn("user", [{"type": "text", "text": "What is it?"}, IMAGE])]
    for name in ALL:
        kept = VIEWS[name].rewritten(given)[-1]["content"]
        assert kept[:2] == given[0]["content"]
    assert kept[2]["type"] == "text"
    responses = [turn("user", [{"type": "input_text", "text": "What is it?"}])]
    added = VIEWS["reasoning"].rewritten(responses)[-1]["content"][-1]
    assert added["type"] == "input_text"


def test_tool_turns_after_the_question_stay_behind_it() -> None:
    talk = [turn("user", "Where?"), turn("assistant", ""), turn("tool", "Paris")]
    rewritten = VIEWS["reasoning"].rewritten(talk)
    assert rewritten[1:] == talk[1:]
    assert "Answer:" in rewritten[0]["content"]


# -- What they make of a reply ---------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("3 and 4 are 7.\nAnswer: 7", "7"),
        ("Answer: 6? No.\nAnswer: 7\n", "7"),
        ("So\n**Answer:** 7", "7"),
        ("So\n**Answer: 7**", "7"),
        ("So\nFinal Answer : a\nb", "a\nb"),
        ("So\nFinal answer: 7", "7"),
        ("So\n__Answer:__ 7", "7"),
        ("So\nCounteranswer: 7", None),
        ("Answer：7", "7"),  # noqa: RUF001 - the colon of Chinese
        ("It is 7.", None),
        ("It is 7.\nAnswer", None),
        ("It is 7.\nAnswer:", None),
    ],
)
def test_the_final_answer_stands_after_the_last_marker(
    reply: str, answer: str | None
) -> None:
    assert final_answer(reply) == answer


def test_what_is_compared_has_no_log_probabilities() -> None:
    whole = Reply(text="So. Answer: 7", token_logprobs=(-1.0,), tokens=("So",))
    read = VIEWS["reasoning"].read(whole)
    assert read == Reply(text="7", view="reasoning")
    assert VIEWS["examples"].read(whole).token_logprobs == (-1.0,)


def fails(_: Any) -> Any:
    raise KeyError


def test_a_reply_without_an_answer_is_unreadable() -> None:
    extracts: list[Any] = [fails, lambda _: None, lambda _: 7, lambda _: " "]
    for extract in extracts:
        read = View("mine", list, extract).read(Reply(text="Paris"))
        assert (read.unreadable, read.text.strip()) == (True, "")


# -- Options ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("views", "why"),
    [
        ("plain", "views to be list or tuple, got str"),
        (["plane"], r"name of one \(plain, examples, reasoning\), got 'plane'"),
        ([None], "got None"),
    ],
)
def test_views_that_make_no_sense_are_refused(views: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        GuardSettings(views=views)


async def later(_: Any) -> Any: ...


@pytest.mark.parametrize("given", [("a", later), ("a", list, later), ("a", "b")])
def test_a_view_that_is_no_plain_function_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="of the view 'a' to be a plain"):
        View(*given)


# -- A call ----------------------------------------------------------------------------


def viewed(
    *,
    replies: Any = None,
    asked: list[Draw] | None = None,
    request: Any = None,
    takes_n: bool = False,
    per_request: int = 100,
    **options: Any,
) -> Outcome:
    """Return how a call ends whose replies are those of the view, or Paris."""

    def come_of(draw: Draw, _: int) -> Any:
        if asked is not None and draw not in asked[-1:]:
            asked.append(draw)
        name = draw.view.name if draw.view else ""
        usual = "So. Answer: Paris" if name == "reasoning" else "Paris"
        return (replies or {}).get(name, usual)

    return feed(
        Request(
            settings=GuardSettings(**{"views": ALL, "threshold": 0.3, **options}),
            state=GuardState(),
            parameters=frozenset({"logprobs", *["n"] * takes_n}),
            **(request or {}),
        ),
        come_of,
        per_request=per_request,
    )


def names_of(samples: Any) -> list[str | None]:
    return [sample.view for sample in samples]


@pytest.mark.parametrize("per_request", [100, 1])
def test_each_view_has_its_share_of_one_request(per_request: int) -> None:
    asked: list[Draw] = []
    made = viewed(asked=asked, n=6, takes_n=True, per_request=per_request).assessment
    assert [draw.n for draw in asked[:4]] == [1, 2, 2, 1]
    # What is missing is asked for in the views that it is missing in.
    topped_up = [draw.view and draw.view.name for draw in asked[4:]]
    assert topped_up == ([] if per_request > 1 else ["plain", "examples"])
    assert names_of(made.samples) == [*ALL, "plain", "examples"]
    assert (made.n_used, made.reasons) == (6, ())


def test_a_reply_without_its_final_answer_is_no_member() -> None:
    made = viewed(replies={"reasoning": "It is Paris."}).assessment
    assert made.reasons == ("view_unreadable",)
    assert (made.n_requested, made.n_used) == (5, 4)


def test_the_same_text_in_two_views_is_no_sign_of_a_cache() -> None:
    unlikely = Reply(text="Paris", token_logprobs=(-20.0,), finish_reason="stop")
    replies = {"plain": unlikely, "examples": unlikely}
    views = ["plain", "examples"]
    options: dict[str, Any] = {"views": views, "method": "wsnne", "replies": replies}
    assert "suspect_agreement" not in viewed(n=3, **options).assessment.reasons
    assert "suspect_agreement" in viewed(n=4, **options).assessment.reasons


def test_the_cost_of_each_request_is_known() -> None:
    prices = Prices(prompt=1e5, completion=1e6)
    made = viewed(
        takes_n=True, n=6, self_check=True, prices=prices, views=["plain", "reasoning"]
    ).assessment
    drawn = [(each.role, each.view, each.replies, each.money) for each in made.requests]
    assert drawn == [
        ("answer", None, 1, 2.0),
        ("sample", "plain", 2, 3.0),
        ("sample", "reasoning", 2, 3.0),
        ("self_check", None, 1, 2.0),
    ]
    assert made.cost.money == pytest.approx(10.0)
    assert made.cost.completion_tokens == 6
    assert "requests" not in made.to_metadata()


# -- A calibration ---------------------------------------------------------------------


def test_a_calibration_is_bound_to_its_views(tmp_path: Any) -> None:
    calibration(views=ALL).save(tmp_path / "made.json")
    path = tmp_path / "made.json"
    assert GuardSettings.given(calibration=path).views == ALL
    GuardSettings.given(calibration=path).check_calibration({})
    for views in ([], ["plain"], ALL[::-1]):
        with pytest.raises(ConfigurationError, match="views=\\['plain', 'examples'"):
            GuardSettings.given(calibration=path, views=views).check_calibration({})
    with pytest.raises(ConfigurationError, match="views=None, here views="):
        GuardSettings(calibration=calibration(), views=ALL).check_calibration({})


def test_plain_samples_are_not_covered_by_a_calibration_with_views() -> None:
    made = viewed(calibration=calibration(views=ALL), threshold=None).assessment
    assert (made.decision, made.reasons) == ("accept", ())
    bound = viewed(
        calibration=calibration(views=ALL), threshold=None, request={"schema": True}
    ).assessment
    assert (bound.decision, bound.reasons) == ("flag", ("uncalibrated",))
