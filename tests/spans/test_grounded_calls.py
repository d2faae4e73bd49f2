"""What becomes of an answer, by how far its documents support it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from snne_guard.engine import Draw, GuardState, Outcome, Request, Response
from snne_guard.errors import ConfigurationError
from snne_guard.settings import GuardSettings
from snne_guard.types import Reply
from tests.langchain.support import (
    guarded,
    metadata_of,
)
from tests.support.openai_server import Server, always
from tests.support.senders import feed

ANSWER = "It is oak. Ida made it."
HALF, WHOLE = "The lamp: it is oak.", f"The lamp: {ANSWER}"


def run(
    script: Any = None,
    *,
    context: Any = HALF,
    request: Any = (),
    answer: Any = ANSWER,
    **options: Any,
) -> Outcome:
    """Return how a call ends in which all replies are the same."""

    def come_of(draw: Draw, _: int) -> Any:
        found = None if script is None else script(draw)
        return answer if found is None else found

    settings = GuardSettings(**{"min_grounded": 0.5, **options})
    given = Request(
        settings=settings, state=GuardState(), context=context, **dict(request)
    )
    return feed(given, come_of)


def ending(outcome: Outcome) -> tuple[Any, ...]:
    made = outcome.assessment
    return made.decision, outcome.delivery, made.grounded, made.reasons


# -- The decision ----------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 0.4])
@pytest.mark.parametrize(
    ("on_uncertain", "decision", "delivery"),
    [
        ("flag", "flag", "answer"),
        ("refuse", "refuse", "refusal"),
        ("raise", "refuse", "nothing"),
        (lambda _: "refuse", "refuse", "refusal"),
    ],
)
def test_an_answer_that_is_not_in_the_documents_is_uncertain(
    threshold: Any, on_uncertain: Any, decision: str, delivery: str
) -> None:
    options = {"threshold": threshold, "on_uncertain": on_uncertain}
    assert ending(run(**options)) == (decision, delivery, 0.25, ("ungrounded",))
    assert ending(run(context=WHOLE, **options)) == ("accept", "answer", 1.0, ())


def test_an_error_says_that_the_documents_do_not_support_the_answer() -> None:
    error = run(on_uncertain="raise").error
    assert str(error) == "the answer is not grounded in its documents"


def test_both_limits_must_be_kept() -> None:
    def apart(draw: Draw) -> Any:
        return None if draw.role == "answer" else f"{draw} else."

    options: dict[str, Any] = {"threshold": 0.0, "on_uncertain": "refuse"}
    assert run(context=WHOLE, **options).assessment.decision == "accept"
    uncertain = run(apart, context=WHOLE, **options).assessment
    assert (uncertain.decision, uncertain.grounded) == ("refuse", 1.0)
    assert "ungrounded" not in uncertain.reasons


def test_the_limit_itself_is_accepted() -> None:
    assert run(min_grounded=0.25).assessment.decision == "accept"
    assert run(min_grounded=0.2500001).assessment.decision == "flag"
    assert run(min_grounded=0, context=None).assessment.decision == "flag"


@pytest.mark.parametrize("context", [None, "", " \n\t "])
def test_without_documents_an_answer_is_uncertain(context: Any) -> None:
    found = ending(run(context=context, threshold=1.0))
    assert found == ("flag", "answer", None, ("no_context", "ungrounded"))


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"answer": '{"lamp": "oak"}', "context": '{"lamp": "oak"}'}, ()),
        ({"request": {"structured": True}}, ()),
        ({"request": {"schema": True}}, ()),
        (
            {
                "answer": Reply(text="", tool_calls="[]", finish_reason="stop"),
                "tool_calls": "score",
                "request": {"tools_bound": True},
            },
            (),
        ),
        ({"context": "Это лампа из дуба."}, ("other_language",)),
        ({"grounding": lambda *_: [2, 2]}, ("grounding_failed",)),
        ({"grounding": lambda *_: 1 / 0}, ("grounding_failed",)),
        ({"answer": "!!!"}, ()),
        ({"answer": "I don't know."}, ()),
    ],
)
def test_what_cannot_be_compared_is_uncertain(change: Any, reasons: Any) -> None:
    made = run(**change).assessment
    assert made.decision == "flag"
    assert not made.grounded
    assert made.reasons == (*reasons, "ungrounded")


def test_calls_of_tools_pass_where_they_are_not_scored() -> None:
    reply = Reply(text="", tool_calls="[]", finish_reason="tool_calls")
    made = run(answer=reply, request={"tools_bound": True}).assessment
    assert (made.decision, made.reasons) == ("unscored", ("tool_calls",))


@pytest.mark.parametrize(
    ("on_error", "context", "decision"),
    [
        ("accept", WHOLE, "unscored"),
        ("accept", HALF, "refuse"),
        ("accept", None, "refuse"),
        ("uncertain", WHOLE, "refuse"),
        ("raise", WHOLE, "unscored"),
    ],
)
def test_on_error_speaks_of_u_alone(on_error: Any, context: Any, decision: str) -> None:
    def failing(draw: Draw) -> Any:
        return None if draw.role == "answer" else ConnectionError()

    options: dict[str, Any] = {"on_error": on_error, "on_uncertain": "refuse"}
    assert run(failing, context=context, **options).assessment.decision == decision


@pytest.mark.parametrize("u_limit", [None, 0.4])
def test_without_min_grounded_nothing_is_decided_by_it(u_limit: Any) -> None:
    made = run(min_grounded=None, spans=True, threshold=u_limit).assessment
    assert made.decision == (None if u_limit is None else "accept")
    assert made.grounded == 0.25
    assert {
        "grounded": 0.25,
        "min_grounded": None,
    }.items() <= made.to_metadata().items()
    bare = run(min_grounded=None, context=None, threshold=u_limit).assessment
    assert "grounded" not in bare.to_metadata()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"min_grounded": 1.5}, "min_grounded to be a finite number"),
        ({"min_grounded": "much"}, "min_grounded to be a finite number"),
        ({"min_grounded": None, "context": "x"}, "context has no effect"),
        ({"min_grounded": None, "grounding": "judge"}, "grounding has no effect"),
        ({"min_grounded": None, "span_threshold": 0.5}, "span_threshold has no effect"),
        ({"min_grounded": None, "on_uncertain": "refuse"}, "needs a threshold, or"),
        ({"context": 3}, "the context to be a text"),
        ({"context": ["a", 3]}, "the context to be a text, .*, got int"),
        ({"grounding": "words:x"}, "grounding to be"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        GuardSettings(**{"min_grounded": 0.5, **options})


def test_what_grounds_may_not_outlast_the_call() -> None:
    def slow(sentences: Any, context: str) -> Any:
        time.sleep(5)
        return [1.0] * len(sentences)

    with Server(always(ANSWER)) as server:
        guard = guarded(
            server, context=WHOLE, min_grounded=0.5, grounding=slow, timeout=1.5
        )
        record = metadata_of(guard.invoke("x?"))
    assert (record["decision"], record["grounded"]) == ("flag", None)
    assert record["reasons"] == ["grounding_failed", "ungrounded"]


# -- The guarded model as judge --------------------------------------------------------


def judging(reply: Any, asked: list[Draw]) -> Any:
    def script(draw: Draw) -> Any:
        if draw.role != "judge":
            return None
        asked.append(draw)
        return reply

    return script


@pytest.mark.parametrize(
    ("reply", "grounded", "decision"),
    [
        ("1: S\n2: S", 1.0, "accept"),
        ("1: S\n2: N", 0.0, "flag"),
        ("1: S\n2: C", 0.0, "flag"),
        ("1: S", 0.0, "flag"),
        ("All of it is supported.", None, "flag"),
        (ConnectionError(), None, "flag"),
        (Response(replies=()), None, "flag"),
    ],
)
def test_the_guarded_model_judges_in_one_call(
    reply: Any, grounded: Any, decision: str
) -> None:
    asked: list[Draw] = []
    made = run(judging(reply, asked), grounding="judge").assessment
    assert (made.grounded, made.decision) == (grounded, decision)
    [draw] = asked
    assert f'Text 1: "{HALF}"' in draw.turns[1]
    assert "Text 2" not in draw.turns[1]
    assert made.requests[-1].role == "judge"


def test_sentences_and_documents_are_judged_in_one_call() -> None:
    asked: list[Draw] = []
    script = judging("1: S S S S S\n2: S S C C N", asked)
    made = run(script, grounding="judge", spans="judge", min_grounded=0).assessment
    assert len(asked) == 1
    assert made.spans is not None
    assert [span.grounded for span in made.spans] == [1.0, 0.0]
    assert [span.supported for span in made.spans] == [4, 2]
    words = run(judging("1: S S S S\n2: C C C C", asked), spans="judge").assessment
    assert [span.grounded for span in words.spans or ()] == [1.0, 0.25]
