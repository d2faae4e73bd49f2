"""What is read of a reply: text, log-probabilities, why it ended, what it cost."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langchain_core.prompt_values import StringPromptValue

from snne_guard.errors import InputError
from snne_guard.sampling.langchain_messages import (
    cost_of,
    last_question,
    read_message,
    read_result,
    to_messages,
    without_logprobs,
)
from snne_guard.types import Cost, Sample
from tests.support.chat_server import (
    ChatServer,
    Reply,
    ToolCall,
    Usage,
    chat_openai,
)


def with_logprobs(text: str, entries: Any) -> AIMessage:
    return AIMessage(text, response_metadata={"logprobs": entries})


def tokens(*pairs: tuple[str, float | None]) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": value} for token, value in pairs]}


def usage(prompt: int, written: int, **details: int) -> dict[str, Any]:
    return {
        "input_tokens": prompt,
        "output_tokens": written,
        "total_tokens": prompt + written,
        "input_token_details": details,
    }


def test_whatever_a_chat_model_takes_becomes_messages() -> None:
    human = HumanMessage("Capital of France?")
    assert to_messages("Capital of France?") == [human]
    assert to_messages(StringPromptValue(text="Capital of France?")) == [human]
    assert to_messages([("system", "Be short."), "Capital of France?"]) == [
        SystemMessage("Be short."),
        human,
    ]
    assert to_messages([]) == []


@pytest.mark.parametrize("value", [3, None, object(), {"question": "x"}])
def test_what_no_chat_model_takes_is_refused_without_its_text(value: object) -> None:
    with pytest.raises(InputError, match=f"got {type(value).__name__}$"):
        to_messages(value)


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([HumanMessage("a"), AIMessage("b"), HumanMessage("c")], "c"),
        ([HumanMessage("a"), AIMessage("b")], "a"),
        ([HumanMessage([{"type": "text", "text": "see"}, {"type": "image"}])], "see"),
        ([SystemMessage("a")], None),
        ([], None),
    ],
)
def test_the_question_is_the_users_last_message(
    messages: list[BaseMessage], question: str | None
) -> None:
    assert last_question(messages) == question


@pytest.mark.parametrize(
    ("content", "text", "reasoned"),
    [
        ("Paris", "Paris", False),
        ("<think>hm</think>Paris", "Paris", True),
        (" \n<think>\nhm\n</think>\n\nParis ", "Paris ", True),
        ("<think>cut off", "", True),
        ("<think></think>", "", True),
        ("hm, it is\n</think>\n\nParis", "Paris", True),
        ("</think>Paris", "Paris", True),
        ("<think>a</think>b<think>c</think>d", "b<think>c</think>d", True),
        ("Say <think> aloud", "Say <think> aloud", False),
        ([{"type": "text", "text": "Paris"}], "Paris", False),
        ([{"type": "thinking", "thinking": "hm"}, "A"], "A", True),
        ([{"type": "reasoning", "summary": []}], "", True),
        ([{"type": "redacted_thinking", "data": "x"}, "Paris"], "Paris", True),
        (["Pa", "ris"], "Paris", False),
        ([], "", False),
    ],
)  # fmt: skip
def test_reasoning_is_no_part_of_the_text(
    content: Any, text: str, *, reasoned: bool
) -> None:
    sample = read_message(AIMessage(content))
    assert (sample.text, sample.reasoned) == (text, reasoned)


def test_reasoning_beside_the_text_is_noted() -> None:
    kept = {"reasoning_content": "hm"}
    assert read_message(AIMessage("Paris", additional_kwargs=kept)).reasoned


def test_log_probabilities_are_read_from_both_forms() -> None:
    found = tokens(("Pa", -0.5), ("ris", 0))
    assert read_message(with_logprobs("Paris", found)).token_logprobs == (-0.5, 0.0)
    listed = found["content"]
    assert read_message(with_logprobs("Paris", listed)).token_logprobs == (-0.5, 0.0)
    assert read_message(with_logprobs("Paris", listed)).tokens == ("Pa", "ris")


@pytest.mark.parametrize(
    "entries",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        [],
        "text",
        3,
        tokens(("Pa", -0.5), ("ris", None)),
        tokens(("Pa", -0.5), ("ris", math.nan)),
        tokens(("Pa", -0.5), ("ris", 0.1)),
        {"content": [{"token": "Paris"}]},
        {"content": [{"token": "Paris", "logprob": "-0.5"}]},
        {"content": [None, {"token": "Paris", "logprob": -0.5}]},
    ],
)
def test_log_probabilities_that_are_not_all_there_count_as_none(entries: Any) -> None:
    assert read_message(with_logprobs("Paris", entries)).token_logprobs is None


def test_log_probabilities_of_the_reasoning_are_left_out() -> None:
    found = tokens(
        ("<th", -9.0), ("ink>", -9.0), ("hm", -9.0), ("</thi", -9.0), ("nk>", -9.0),
        ("Pa", -0.5), ("ris", -0.25),
    )  # fmt: skip
    sample = read_message(with_logprobs("<think>hm</think>Paris", found))
    assert (sample.text, sample.token_logprobs) == ("Paris", (-0.5, -0.25))


def test_log_probabilities_without_an_end_of_the_reasoning_are_none() -> None:
    found = tokens(("?", -9.0), ("Paris", -0.5))
    sample = read_message(with_logprobs("<think>hm</think>Paris", found))
    assert (sample.text, sample.token_logprobs) == ("Paris", None)


@given(st.text(alphabet="<>/think a", max_size=30), st.data())
def test_the_end_of_the_reasoning_is_found_however_it_is_cut(
    reasoning: str, data: st.DataObject
) -> None:
    whole = f"<think>{reasoning}</think>"
    end = whole.index("</think>") + len("</think>")
    cuts = data.draw(st.sets(st.integers(1, end - 1)))
    edges = [0, *sorted(cuts), end]
    thought = [(whole[a:b], -9.0) for a, b in itertools.pairwise(edges)]
    found = tokens(*thought, ("Paris", -0.5))
    sample = read_message(with_logprobs(f"{whole[:end]}Paris", found))
    assert sample.token_logprobs == (-0.5,)
    assert sample.text == "Paris"


@pytest.mark.parametrize(
    ("metadata", "info", "finish", "refused", "truncated"),
    [
        ({"finish_reason": "stop"}, None, "stop", False, False),
        ({"stop_reason": "max_tokens"}, None, "max_tokens", False, True),
        ({"done_reason": "length"}, None, "length", False, True),
        ({"stopReason": "end_turn"}, None, "end_turn", False, False),
        ({"finish_reason": "MAX_TOKENS"}, None, "MAX_TOKENS", False, True),
        ({}, {"finish_reason": "length"}, "length", False, True),
        ({"finish_reason": "stop"}, {"finish_reason": "length"}, "stop", False, False),
        ({"finish_reason": "content_filter"}, None, "content_filter", True, False),
        ({"stop_reason": "refusal"}, None, "refusal", True, False),
        ({"finish_reason": "SAFETY"}, None, "SAFETY", True, False),
        (
            {"incomplete_details": {"reason": "max_output_tokens"}},
            None,
            "max_output_tokens",
            False,
            True,
        ),
        (
            {"incomplete_details": {"reason": "content_filter"}},
            None,
            "content_filter",
            True,
            False,
        ),
        ({"incomplete_details": None}, None, None, False, False),
        (
            {"stop_reason": "model_context_window_exceeded"},
            None,
            "model_context_window_exceeded",
            False,
            True,
        ),
        ({"finish_reason": ""}, None, None, False, False),
        ({"finish_reason": 3}, None, None, False, False),
        ({}, None, None, False, False),
    ],
)
def test_why_a_reply_ended_is_read_from_every_providers_word(
    metadata: dict[str, Any],
    info: dict[str, Any] | None,
    finish: str | None,
    *,
    refused: bool,
    truncated: bool,
) -> None:
    message = AIMessage("x", response_metadata=metadata)
    sample = read_message(message, info=info)
    assert sample.finish_reason == finish
    assert (sample.refused, sample.truncated) == (refused, truncated)


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("", additional_kwargs={"refusal": "I cannot help"}),
        AIMessage([{"type": "refusal", "refusal": "I cannot help"}]),
    ],
)
def test_a_refusal_is_known_in_both_forms(message: AIMessage) -> None:
    assert read_message(message).refused
    assert not read_message(AIMessage("", additional_kwargs={"refusal": None})).refused


@pytest.mark.parametrize(
    ("metadata", "given_name", "expected"),
    [
        ({"model_name": "a", "model": "b"}, "c", "a"),
        ({"model": "b"}, "c", "b"),
        ({"model_id": "b"}, None, "b"),
        ({}, "c", "c"),
        ({}, None, None),
    ],
)
def test_the_model_is_the_one_that_answered(
    metadata: dict[str, Any], given_name: str | None, expected: str | None
) -> None:
    message = AIMessage("x", response_metadata=metadata)
    assert read_message(message, model=given_name).model == expected


def test_calls_of_tools_are_read_without_their_ids_and_in_one_form() -> None:
    def calling(call_id: str, args: dict[str, Any]) -> str | None:
        call = {"name": "add", "args": args, "id": call_id}
        return read_message(AIMessage("", tool_calls=[call])).tool_calls

    first = calling("1", {"a": 1, "b": [2]})
    assert first == '[{"args":{"a":1,"b":[2]},"name":"add"}]'
    assert calling("2", {"b": [2], "a": 1}) == first
    assert calling("3", {"b": [3], "a": 1}) != first


def test_calls_with_broken_arguments_are_calls_too() -> None:
    call = {"name": "add", "args": "{", "id": "1", "error": None}
    sample = read_message(AIMessage("", invalid_tool_calls=[call]))
    assert sample.tool_calls == '[{"args":"{","name":"add"}]'


def test_what_is_no_ai_message_calls_no_tools() -> None:
    sample = read_message(ChatMessage(content="Paris", role="assistant"))
    assert (sample.text, sample.tool_calls) == ("Paris", None)


def test_the_usage_of_a_request_is_read_once() -> None:
    counted = AIMessage("a", usage_metadata=usage(11, 4, cache_read=8))
    messages = [counted, AIMessage("b", usage_metadata=usage(11, 4, cache_read=8))]
    result = LLMResult(
        generations=[[ChatGeneration(message=message) for message in messages]],
        llm_output={"model_name": "m"},
    )
    found = read_result(result)
    assert [(s.text, s.model) for s in found.samples] == [("a", "m"), ("b", "m")]
    assert found.cost == Cost(
        calls=1, prompt_tokens=11, cached_tokens=8, completion_tokens=4
    )


@pytest.mark.parametrize(
    "result",
    [
        LLMResult(generations=[]),
        LLMResult(generations=[[]]),
        LLMResult(generations=[[Generation(text="no message")]]),
    ],
)
def test_a_result_with_nothing_in_it_has_no_samples(result: LLMResult) -> None:
    found = read_result(result)
    assert found.samples == ()
    assert found.cost == Cost(calls=1, lower_bound=True)


def test_the_info_beside_a_message_is_read_too() -> None:
    info = {"finish_reason": "length", "logprobs": tokens(("Paris", -0.5))}
    generation = ChatGeneration(message=AIMessage("Paris"), generation_info=info)
    (sample,) = read_result(LLMResult(generations=[[generation]])).samples
    assert (sample.truncated, sample.token_logprobs) == (True, (-0.5,))


def test_a_count_below_what_came_is_a_lower_bound() -> None:
    drawn = [Sample(text="x", token_logprobs=(-0.1,) * 4) for _ in range(3)]
    counted = AIMessage("x", usage_metadata=usage(5, 4))
    assert cost_of(counted, drawn) == Cost(
        calls=1, prompt_tokens=5, completion_tokens=4, lower_bound=True
    )
    whole = AIMessage("x", usage_metadata=usage(5, 12))
    assert cost_of(whole, drawn).lower_bound is False


def test_no_count_at_all_is_a_lower_bound_of_what_came() -> None:
    drawn = [Sample(text="x", token_logprobs=(-0.1,) * 4), Sample(text="y")]
    assert cost_of(AIMessage("x"), drawn) == Cost(
        calls=1, completion_tokens=4, lower_bound=True
    )
    assert cost_of(HumanMessage("x"), ()) == Cost(calls=1, lower_bound=True)


def test_a_count_without_details_has_nothing_cached() -> None:
    counted = AIMessage(
        "x", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    )
    assert cost_of(counted, ()).cached_tokens == 0


@pytest.mark.parametrize("kind", [AIMessage, AIMessageChunk])
def test_the_guards_own_log_probabilities_are_taken_off_a_copy(kind: Any) -> None:
    kept = {"finish_reason": "stop"}
    message = kind("x", response_metadata={**kept, "logprobs": tokens(("x", -0.1))})
    bare = without_logprobs(message)
    assert type(bare) is kind
    assert bare.response_metadata == kept
    assert "logprobs" in message.response_metadata
    assert without_logprobs(bare) is bare


def test_the_real_client_is_read_like_the_server_meant() -> None:
    reply = Reply(
        texts=["<think>hm hm</think> Paris it is", "Lyon"],
        logprobs=[[-3.0, -3.0, -0.5, -0.25, -0.25], [-1.0]],
        finish_reasons=["stop", "length"],
        model="served",
        usage=Usage(prompt=9, completion=8, cached=4),
    )
    with ChatServer([reply]) as server:
        result = chat_openai(server).generate([[HumanMessage("x")]], n=2, logprobs=True)
    found = read_result(result)
    first, second = found.samples
    assert (first.text, first.token_logprobs) == ("Paris it is", (-0.5, -0.25, -0.25))
    assert (first.finish_reason, first.reasoned) == ("stop", True)
    assert (second.text, second.truncated) == ("Lyon", True)
    assert found.cost == Cost(
        calls=1, prompt_tokens=9, cached_tokens=4, completion_tokens=8
    )


def test_the_real_clients_refusals_and_calls_are_read() -> None:
    call = ToolCall(name="add", arguments={"b": 2, "a": 1})
    reply = Reply(refusals=["I cannot help", None], tool_calls=[[], [call]])
    with ChatServer([reply]) as server:
        result = chat_openai(server).generate([[HumanMessage("x")]], n=2)
    refusal, calling = read_result(result).samples
    assert (refusal.refused, refusal.text) == (True, "")
    assert calling.tool_calls == '[{"args":{"a":1,"b":2},"name":"add"}]'
    assert (calling.refused, calling.finish_reason) == (False, "tool_calls")
