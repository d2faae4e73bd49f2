"""What is read of the OpenAI API's requests and answers.

How text, endings and calls are read is the same as for LangChain, whose tests hold it.
"""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import Response

from snne_guard.cost import Cost
from snne_guard.engine.reply_set import reply_set_of
from snne_guard.openai.apis import ChatApi, ResponsesApi
from snne_guard.openai.request import ApiRequest
from snne_guard.types import Reply

CHAT, RESPONSES = ChatApi(), ResponsesApi()


def completion(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "choices": list(choices), **fields}


def choice(content: Any = "Paris", index: int = 0, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **fields.pop("message", {})}
    return {"index": index, "message": message, "finish_reason": "stop", **fields}


def only(value: object) -> Reply:
    (sample,) = CHAT.read(value).replies
    return sample


def output(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "status": "completed", "output": list(items), **fields}


def said(text: str, **fields: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, **fields}
    return {"type": "message", "role": "assistant", "content": [part]}


def response(*items: dict[str, Any], **fields: Any) -> Reply:
    (sample,) = RESPONSES.read(output(*items, **fields)).replies
    return sample


def entries(*tokens: str) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": -1.0, "bytes": None} for token in tokens]


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def usage(read: str, written: str) -> dict[str, Any]:
    return {
        f"{read}_tokens": 5,
        f"{written}_tokens": 9,
        f"{read}_tokens_details": {"cached_tokens": 3},
        f"{written}_tokens_details": {"reasoning_tokens": 7},
    }


# -- Requests --------------------------------------------------------------------------


def test_the_question_is_the_user_s_last_message() -> None:
    parts = [
        {"type": "text", "text": "What is "},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "input_text", "text": "this?"},
    ]
    messages = [
        {"role": "user", "content": "first"},
        {"role": "user", "content": parts},
        ChatCompletionMessage(role="assistant", content="A map."),
    ]
    bodies: list[tuple[Any, dict[str, Any], str | None]] = [
        (CHAT, {"messages": messages}, "What is this?"),
        (RESPONSES, {"input": messages}, "What is this?"),
        (RESPONSES, {"input": "Capital of France?"}, "Capital of France?"),
        (RESPONSES, {}, None),
    ]
    for api, body, question in bodies:
        request = ApiRequest(api=api, path="/", body=body, options={}, cast_to=None)
        assert request.question == question


# -- Chat completions ------------------------------------------------------------------


def test_calls_of_tools_are_canonical() -> None:
    calls = [
        call("f", '{"b": 1, "a": [2]}'),
        call("g", '{"b": '),
        call("n", '{"b": NaN}'),
        {"type": "custom", "custom": {"name": "h", "input": "as it is"}},
    ]
    sample = only(completion(choice(None, message={"tool_calls": calls})))
    assert sample.tool_calls == (
        '[{"args":"as it is","name":"h"},{"args":"{\\"b\\": ","name":"g"},'
        '{"args":"{\\"b\\": NaN}","name":"n"},{"args":{"a":[2],"b":1},"name":"f"}]'
    )
    assert not sample.unreadable
    called = {"type": "function_call", "name": "f", "arguments": '{"b": 1}'}
    custom = {"type": "custom_tool_call", "name": "h", "input": "as it is"}
    assert response(called, custom).tool_calls == (
        '[{"args":"as it is","name":"h"},{"args":{"b":1},"name":"f"}]'
    )


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "content": "Rome"},
        {"type": "output_text", "value": "Rome"},
        {"type": "text", "text": None, "json": {"city": "Rome"}},
        {"type": "video", "url": "x"},
    ],
)
def test_a_part_that_is_not_read_makes_a_reply_unreadable(part: dict[str, Any]) -> None:
    said = {"type": "text", "text": "The capital is:"}
    assert only(completion(choice(None, message={"content": [said, part]}))).unreadable
    streamed = {"choices": [{"index": 0, "delta": {"content": [said, part]}}]}
    (reply,) = CHAT.read(CHAT.join([streamed])).replies
    assert reply.unreadable


@pytest.mark.parametrize(
    "more",
    [
        {"video": {"url": "x"}},
        {"attachments": [{"id": "f_1"}]},
        {"files": ["f_1"]},
        {"function_calls": [{"name": "pay"}]},
        {"images": [{"image_url": {"url": "x"}}]},
        {"artifact": "x.html"},
        {"provider_specific_fields": {"citations": [], "image": "x"}},
        {"provider_specific_fields": [{"image": "x"}]},
    ],
)
def test_a_field_that_is_not_read_makes_a_reply_unreadable(
    more: dict[str, Any],
) -> None:
    assert only(completion(choice("Here it is.", message=more))).unreadable
    pieces: list[dict[str, Any]] = [{"content": "Here it is.", **more}, {}]
    chunks = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
    (streamed,) = CHAT.read(CHAT.join(chunks)).replies
    assert streamed.unreadable
    part = {"type": "text", "text": "Here it is.", **more}
    assert only(completion(choice([part]))).unreadable
    assert response(said("Here it is.", **more)).unreadable
    assert response({**said("Here it is."), **more}).unreadable


@pytest.mark.parametrize(
    "more",
    [
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text"}]},
        {"reasoning_content": "hm", "thinking_blocks": [{"thinking": "hm"}]},
        {"provider_specific_fields": {"thinking_blocks": [{}], "refusal": None}},
        {"annotations": [{"type": "url_citation"}], "citations": ["x"]},
        {"context": {"citations": [{}], "intent": "[]"}, "end_turn": True},  # Azure
        {"prefix": True, "weight": 1, "name": "m"},  # Mistral and others
        {"extra_content": {"google": {"thought_signature": "x"}}},  # Gemini
        {"audio": None, "images": [], "function_call": {"name": "", "arguments": ""}},
    ],
)
def test_what_is_known_to_be_no_answer_leaves_a_reply_readable(
    more: dict[str, Any],
) -> None:
    sample = only(completion(choice(message=more)))
    pieces: list[dict[str, Any]] = [{"content": "Par", **more}, {"content": "is"}]
    chunks = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
    (streamed,) = CHAT.read(CHAT.join(chunks)).replies
    for each in (sample, streamed, response({**said("Paris"), **more})):
        assert (each.text, each.unreadable) == ("Paris", False)


def test_a_text_in_an_odd_place_makes_a_reply_unreadable() -> None:
    assert only(completion(choice(message={"text": "Rome"}))).unreadable
    part = {"type": "text", "text": "The capital is:", "content": "Rome"}
    assert only(completion(choice([part]))).unreadable
    assert response(said("The capital is:", content="Rome")).unreadable


def test_a_source_that_says_something_is_unreadable() -> None:
    source = {"type": "reference", "reference_ids": [1]}
    said = {"type": "text", "text": "Paris"}
    assert not only(completion(choice([said, source]))).unreadable
    assert only(completion(choice([said, {**source, "text": ", France"}]))).unreadable


def test_a_refusal_among_parts_refuses() -> None:
    part = {"type": "refusal", "refusal": "I cannot help."}
    assert only(completion(choice(None, message={"content": [part]}))).refused


def test_texts_and_lists_of_a_stream_are_joined() -> None:
    pieces = ["The capital is ", [{"type": "text", "text": "Rome"}], "."]
    parts = [
        {"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces
    ]
    (reply,) = CHAT.read(CHAT.join(parts)).replies
    assert (reply.text, reply.unreadable) == ("The capital is Rome.", False)


@pytest.mark.parametrize("name", ["parameters", "args", "input"])
def test_arguments_by_another_name_are_unreadable(name: str) -> None:
    calls = [{"type": "function", "function": {"name": "pay", name: "{}"}}]
    assert only(completion(choice(None, message={"tool_calls": calls}))).unreadable
    calls = [{"type": "function", "function": {"name": "now", "arguments": None}}]
    assert not only(completion(choice(None, message={"tool_calls": calls}))).unreadable


@pytest.mark.parametrize("depth", [990, 100_000])
def test_arguments_of_any_depth_are_compared(depth: int) -> None:
    arguments = "[" * depth + "]" * depth
    sample = only(
        completion(choice("Hm.", message={"tool_calls": [call("f", arguments)]}))
    )
    assert arguments in (sample.tool_calls or "")
    assert not sample.unreadable
    found = reply_set_of(sample, [sample], include_answer=True)
    assert found.texts == (f'["Hm.",{sample.tool_calls}]',) * 2


@pytest.mark.parametrize(
    ("fields", "refused", "truncated", "unreadable"),
    [
        ({}, False, False, False),
        ({"finish_reason": "length"}, False, True, False),
        ({"finish_reason": None}, False, True, False),
        ({"finish_reason": "content_filter"}, True, False, False),
        ({"message": {"content": None, "refusal": "No."}}, True, False, False),
        ({"message": {"function_call": {"name": "f"}}}, False, False, True),
        ({"message": {"audio": {"id": "a"}}}, False, False, True),
        ({"message": {"content": [{"type": "image_url"}]}}, False, False, True),
        ({"message": {"content": [{"type": "text", "text": {}}]}}, False, False, True),
        ({"message": {"content": {"text": "x"}}}, False, False, True),
        ({"finish_reason": "content_filter: SAFETY"}, True, False, False),
        ({"finish_reason": "tool_calls"}, False, False, True),
        ({"message": {"tool_calls": {"f": 1}}}, False, False, True),
        ({"message": {"tool_calls": ["f"]}}, False, False, True),
        (
            {"message": {"tool_calls": [{"type": "mcp", "mcp": {"name": "f"}}]}},
            False,
            False,
            True,
        ),
    ],
)
def test_how_a_reply_ended_and_what_else_it_holds(
    fields: dict[str, Any], *, refused: bool, truncated: bool, unreadable: bool
) -> None:
    sample = only(completion(choice(**fields)))
    found = (sample.refused, sample.truncated, sample.unreadable)
    assert found == (refused, truncated, unreadable)


def test_what_a_server_leaves_empty_is_not_there() -> None:
    """Snowflake's Cortex fills every place that a message may have."""
    empty: dict[str, Any] = {
        "audio": {"id": "", "data": "", "expires_at": 0, "transcript": ""},
        "function_call": {"arguments": "", "name": ""},
        "refusal": "",
    }
    called = {**call("f", '{"b": 1}'), "custom": {"input": "", "name": ""}}
    for more in ({}, {"tool_calls": [called]}):
        message = {**empty, **more}
        sample = only(completion(choice("Four.", message=message)))
        delta = {**message, "content": "Four."}
        chunk = {"choices": [{"delta": delta, "finish_reason": "stop"}]}
        (streamed,) = CHAT.read(CHAT.join([chunk])).replies
        wanted = '[{"args":{"b":1},"name":"f"}]' if more else None
        for each in (sample, streamed):
            assert (each.text, each.tool_calls) == ("Four.", wanted)
            assert not each.unreadable


@pytest.mark.parametrize(
    ("unlike", "expected"),
    [
        ({}, 1),  # a cache answered
        ({"id": "b"}, 2),
        ({"text": "Rome"}, 2),  # Ollama draws its ids from 999
    ],
)
def test_one_id_and_one_text_in_two_responses_come_from_a_cache(
    unlike: dict[str, str], expected: int
) -> None:
    fields = {"id": "a", "text": "Paris", **unlike}
    answer = only(completion(choice("Paris"), id="a"))
    sample = only(completion(choice(fields["text"]), id=fields["id"]))
    found = reply_set_of(answer, [sample], include_answer=True)
    assert len(found.texts) == expected
    assert ("suspect_agreement" in found.reasons) is (expected == 1)


def test_choices_of_one_response_share_its_id_and_may_agree() -> None:
    answer = only(completion(choice(), id="a"))
    samples = CHAT.read(completion(choice(), choice(), id="b")).replies
    found = reply_set_of(answer, samples, include_answer=True)
    assert (len(found.texts), found.reasons) == (3, ())


def test_usage_is_counted_once_for_all_choices() -> None:
    reply = CHAT.read(
        completion(choice(), choice(), usage=usage("prompt", "completion"))
    )
    fields = output(said("Paris"), usage=usage("input", "output"))
    assert RESPONSES.read(Response.construct(**fields)) == RESPONSES.read(fields)
    assert reply.cost == RESPONSES.read(fields).cost
    assert reply.cost == Cost(
        calls=1,
        attempts=1,
        prompt_tokens=5,
        cached_tokens=3,
        completion_tokens=9,
        reasoning_tokens=7,
    )


@pytest.mark.parametrize("details", [{"reasoning_tokens": 94}, None])
def test_reasoning_in_the_total_alone_is_counted(details: Any) -> None:
    """xAI has it beside the completion, Gemini nowhere else."""
    given = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}
    given["completion_tokens_details"] = details
    cost = CHAT.read(completion(choice(), usage=given)).cost
    assert (cost.prompt_tokens, cost.completion_tokens) == (32, 103)


def test_chunks_are_joined_to_a_completion() -> None:
    def chunk(delta: Any, **fields: Any) -> dict[str, Any]:
        return {"id": "c", "model": "m", "choices": [{"delta": delta, **fields}]}

    first = {"name": "f", "arguments": ""}
    parts = [
        {"id": "c", "choices": [], "prompt_filter_results": []},
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Par"}, logprobs={"content": entries("Par")}),
        chunk({"role": "assistant", "content": "is"}, index=0),
        chunk(None),
        chunk({"tool_calls": [{"index": 0, "type": "function", "function": first}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
        chunk({}, finish_reason="stop"),
        {"id": "c", "choices": [], "usage": {"completion_tokens": 2}},
    ]
    reply = CHAT.read(CHAT.join(parts))
    (sample,) = reply.replies
    assert (sample.text, sample.finish_reason, sample.model) == ("Paris", "stop", "m")
    assert sample.tool_calls == '[{"args":{"a":1},"name":"f"}]'
    assert reply.cost.completion_tokens == 2
    assert CHAT.read(CHAT.join([])).replies == ()
    (cut,) = CHAT.read(CHAT.join(parts[:4])).replies
    assert (cut.text, cut.truncated) == ("Paris", True)


# -- The Responses API -----------------------------------------------------------------


def test_log_probabilities_of_all_parts_are_put_together() -> None:
    one, two = said("Par", logprobs=entries("Par")), said("is", logprobs=entries("is"))
    assert response(one, two).token_logprobs == (-1.0, -1.0)
    assert response(one, said("is")).token_logprobs is None
    assert response(said("Paris")).token_logprobs is None


def test_how_a_response_ended_and_that_it_refuses() -> None:
    why = {"reason": "max_output_tokens"}
    sample = response(status="incomplete", incomplete_details=why)
    assert (sample.finish_reason, sample.truncated) == ("max_output_tokens", True)
    part = {"type": "refusal", "refusal": "I cannot."}
    sample = response({"type": "message", "content": [part]})
    assert (sample.refused, sample.unreadable) == (True, False)
    error = {"code": "rate_limit_exceeded"}
    assert response(status="failed", error=error).truncated


def test_what_is_neither_text_nor_call_is_unreadable() -> None:
    image = {"type": "image_generation_call", "result": "AAAA"}
    assert response(said("Here."), image).unreadable
    assert response().unreadable
    assert not response(said("Here.")).unreadable
