"""Answers that say more than their text: images, files, functions of old."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from snne_guard import SNNEGuard
from tests.support.guarding import WAYS, ask, record

SAME = "Here it is."


class Saying(BaseChatModel):
    """Says the messages that a function makes, the answer's first where it waits."""

    say: Callable[[int], AIMessage]
    asked: list[int] = []  # noqa: RUF012 - a field of pydantic's, copied for each

    @property
    def _llm_type(self) -> str:
        return "saying"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        self.asked.append(len(self.asked))
        message = self.say(self.asked[-1])
        return ChatResult(generations=[ChatGeneration(message=message)])


def guarded(say: Callable[[int], AIMessage], **options: Any) -> SNNEGuard:
    settings: dict[str, Any] = {"threshold": 0.4, "on_uncertain": "refuse", **options}
    model = Saying(say=say, asked=[])
    return SNNEGuard(model, n=3, schedule="answer_first", **settings)


def shown(block: dict[str, Any]) -> Callable[[int], AIMessage]:
    """Return what says the same text beside a block of its own each time."""

    def say(number: int) -> AIMessage:
        own = {**block, "id": str(number)}
        return AIMessage(content=[{"type": "text", "text": SAME}, own])

    return say


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat"}},
        {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
        {"type": "file", "file_id": "f"},
    ],
    ids=lambda block: str(block["type"]),
)
def test_an_answer_is_not_scored_by_the_text_beside_what_it_shows(
    block: dict[str, Any], way: str
) -> None:
    found = record(ask(guarded(shown(block)), "Draw a cat.", way))
    assert (found["decision"], found["uncertainty"]) == ("refuse", None)
    assert {"answer_unread", "unread_samples"} <= set(found["reasons"])


def test_a_sample_with_an_image_leaves_the_set() -> None:
    image = shown({"type": "image", "base64": "AAAA"})
    say: Callable[[int], AIMessage] = lambda n: image(n) if n == 1 else AIMessage(SAME)  # noqa: E731
    found = record(guarded(say).invoke("Draw a cat."))
    assert (found["decision"], found["n_used"]) == ("accept", 2)
    assert "unread_samples" in found["reasons"]


def test_an_answer_that_is_heard_is_not_read() -> None:
    spoken = {"audio": {"id": "a", "transcript": SAME}}
    say = AIMessage(content="", additional_kwargs=spoken)
    assert "answer_unread" in record(guarded(lambda _n: say).invoke("x"))["reasons"]


def test_text_in_blocks_with_its_reasoning_is_read_as_ever() -> None:
    blocks: list[str | dict[str, Any]] = [
        {"type": "reasoning", "reasoning": "France?"},
        {"type": "text", "text": "Paris"},
    ]
    found = record(guarded(lambda _n: AIMessage(content=blocks)).invoke("x"))
    assert (found["decision"], found["uncertainty"]) == ("accept", 0.0)


def paying(number: int) -> AIMessage:
    call = {"name": "pay", "arguments": f'{{"euros": {number}}}'}
    return AIMessage(content=SAME, additional_kwargs={"function_call": call})


@pytest.mark.parametrize("way", WAYS)
def test_a_function_that_is_called_the_old_way_is_a_call(way: str) -> None:
    skipped = record(ask(guarded(paying), "Pay.", way))
    assert skipped["decision"] == "unscored"
    assert "tool_calls" in skipped["reasons"]
    scored = record(ask(guarded(paying, tool_calls="score"), "Pay.", way))
    assert (scored["decision"], scored["uncertainty"] > 0.4) == ("refuse", True)


def test_one_that_a_provider_writes_beside_its_calls_counts_once() -> None:
    def say(number: int) -> AIMessage:
        call = {"name": "pay", "args": {"euros": 5}, "id": str(number)}
        old = {"name": "pay", "arguments": '{"euros": 5}'}
        return AIMessage(
            content="", tool_calls=[call], additional_kwargs={"function_call": old}
        )

    guard = guarded(say, tool_calls="score")
    found = guard.assess("Pay.")
    assert found.answer is not None
    assert found.answer.tool_calls == '[{"args":{"euros":5},"name":"pay"}]'
    assert found.decision == "accept"
