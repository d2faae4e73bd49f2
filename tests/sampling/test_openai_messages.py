"""What is read of a conversation with the OpenAI API, and of its replies."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response

from snne_guard.errors import InputError, SamplingError
from snne_guard.sampling.openai_messages import (
    last_question,
    read_completion,
    read_response,
    to_items,
)
from snne_guard.sampling.retry import is_transient
from snne_guard.types import Cost, Sample


def completion(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return {"model": "m", "choices": list(choices), "usage": usage, **fields}


def choice(content: Any = "Paris", index: int = 0, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **fields.pop("message", {})}
    return {"index": index, "message": message, "finish_reason": "stop", **fields}


def only(value: object) -> Sample:
    (sample,) = read_completion(value).samples
    return sample


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def output(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    whole = {"model": "m", "status": "completed", "output": list(items)}
    return {**whole, "usage": usage, **fields}


def said(text: str, **fields: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, **fields}
    return {"type": "message", "role": "assistant", "content": [part]}


def response(*items: dict[str, Any], **fields: Any) -> Sample:
    (sample,) = read_response(output(*items, **fields)).samples
    return sample


def entries(*tokens: str) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": -1.0, "bytes": None} for token in tokens]


# --- conversations --------------------------------------------------------------------


def test_a_string_is_the_user_s_question() -> None:
    items = to_items("Capital of France?")
    assert items == [{"role": "user", "content": "Capital of France?"}]
    assert last_question(items) == "Capital of France?"


def test_messages_go_out_as_they_are() -> None:
    reply = ChatCompletionMessage(role="assistant", content="Paris.")
    messages = [{"role": "user", "content": "x"}, reply]
    assert to_items(messages) == messages
    assert to_items(tuple(messages)) == messages


@pytest.mark.parametrize(
    ("value", "got"),
    [(3, "'int'"), ([], "'list'"), (["x"], "a list of str"), (b"x", "'bytes'")],
)
def test_what_is_no_conversation_is_refused(value: Any, got: str) -> None:
    with pytest.raises(InputError, match=f"messages must be .*; got {got}"):
        to_items(value)


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
    assert last_question(messages) == "What is this?"
    assert last_question([{"role": "system", "content": "x"}]) is None


# --- chat completions -----------------------------------------------------------------


def test_choices_come_by_their_index_whatever_their_order() -> None:
    reply = read_completion(completion(choice("b", 1), choice("c", 2), choice("a", 0)))
    assert [sample.text for sample in reply.samples] == ["a", "b", "c"]


def test_the_package_s_own_objects_are_read_like_their_fields() -> None:
    fields = completion(choice(message={"reasoning_content": "hm"}), object="x")
    made = ChatCompletion.construct(**fields)  # as the package does, unchecked
    assert read_completion(made) == read_completion(fields)
    sample = only(made)
    assert (sample.text, sample.model, sample.finish_reason) == ("Paris", "m", "stop")
    assert sample.reasoned


@pytest.mark.parametrize(
    ("content", "text", "reasoned"),
    [
        ("<think>hm</think>\nParis", "Paris", True),
        ([part("text", text="Par"), part("text", text="is")], "Paris", False),
        ([part("thinking", thinking=[]), part("text", text="Paris")], "Paris", True),
        (None, "", False),
        ([{"type": "text"}, "odd"], "", False),
    ],
)
def test_reasoning_is_no_part_of_the_text(
    content: Any, text: str, *, reasoned: bool
) -> None:
    sample = only(completion(choice(content)))
    assert (sample.text, sample.reasoned) == (text, reasoned)


def test_reasoning_that_the_server_puts_aside_is_noted() -> None:
    for name in ("reasoning_content", "reasoning"):
        assert only(completion(choice(message={name: "hm"}))).reasoned


def test_log_probabilities_are_the_text_s_own() -> None:
    listed = {"content": entries("<think>", "hm", "</think>", "Par", "is")}
    sample = only(completion(choice("<think>hm</think>Paris", logprobs=listed)))
    assert (sample.token_logprobs, sample.misaligned) == ((-1.0, -1.0), False)
    assert "".join(sample.tokens or ()) == sample.text
    sample = only(completion(choice("Rome", logprobs=listed)))
    assert (sample.token_logprobs, sample.misaligned) == (None, True)
    assert only(completion(choice("Rome", logprobs=None))).token_logprobs is None


def test_calls_of_tools_are_canonical() -> None:
    calls = [
        {"type": "function", "function": {"name": "f", "arguments": '{"b": 1.0}'}},
        {"type": "function", "function": {"name": "g", "arguments": '{"b": '}},
        {"type": "custom", "custom": {"name": "h", "input": "as it is"}},
    ]
    sample = only(completion(choice(None, message={"tool_calls": calls})))
    assert sample.tool_calls == (
        '[{"args":{"b":1},"name":"f"},{"args":"{\\"b\\": ","name":"g"},'
        '{"args":"as it is","name":"h"}]'
    )
    old = {"function_call": {"name": "f", "arguments": "{}"}}
    assert only(completion(choice(None, message=old))).tool_calls == (
        '[{"args":{},"name":"f"}]'
    )


def test_refusals_and_cut_off_replies_are_recognised() -> None:
    refused = choice(None, message={"refusal": "I cannot."})
    filtered = choice("Par", finish_reason="content_filter")
    cut = choice("Par", finish_reason="length")
    assert only(completion(refused)).refused
    assert only(completion(filtered)).refused
    assert only(completion(cut)).truncated
    assert not only(completion(choice())).refused


def test_usage_is_counted_once_for_all_choices() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 3}}
    usage = {"prompt_tokens": 5, "completion_tokens": 9, **details}
    reply = read_completion(completion(choice(), choice(), usage=usage))
    assert reply.cost == Cost(
        calls=1, prompt_tokens=5, cached_tokens=3, completion_tokens=9
    )


def test_a_count_that_cannot_be_right_is_a_lower_bound() -> None:
    listed = {"content": entries("Par", "is")}
    drawn = [choice(logprobs=listed), choice(logprobs=listed)]
    assert read_completion(completion(*drawn)).cost.lower_bound
    untold = read_completion(completion(*drawn, usage=None)).cost
    assert untold == Cost(calls=1, completion_tokens=4, lower_bound=True)


@pytest.mark.parametrize("value", ["text", {}, {"choices": None}, None, 3])
def test_what_holds_no_choices_is_an_empty_reply(value: Any) -> None:
    assert read_completion(value).samples == ()
    assert read_response(value).samples == ()


def test_an_error_in_place_of_choices_is_raised() -> None:
    error = {"code": "server_error", "message": "try again"}
    with pytest.raises(SamplingError, match="server_error: try again") as caught:
        read_completion({"error": error, "choices": None})
    assert is_transient(caught.value)
    with pytest.raises(SamplingError) as caught:
        read_completion({"error": {"code": 502, "message": "no such model"}})
    assert not is_transient(caught.value)


def test_a_reply_carries_the_id_of_its_response() -> None:
    one, two = read_completion(completion(choice("a"), choice("b"), id="c-1")).samples
    assert (one.response_id, two.response_id) == ("c-1", "c-1")
    assert response(said("Paris"), id="resp-1").response_id == "resp-1"


# --- the Responses API ----------------------------------------------------------------


def test_the_text_of_a_response_is_that_of_its_messages() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    sample = response(thought, said("Par"), said("is"))
    assert (sample.text, sample.reasoned, sample.model) == ("Paris", True, "m")
    assert sample.finish_reason == "completed"
    plain = response(said("<think>hm</think>Paris"))
    assert (plain.text, plain.reasoned) == ("Paris", True)


def test_log_probabilities_of_all_parts_are_put_together() -> None:
    one, two = said("Par", logprobs=entries("Par")), said("is", logprobs=entries("is"))
    assert response(one, two).token_logprobs == (-1.0, -1.0)
    assert "".join(response(one, two).tokens or ()) == response(one, two).text
    assert response(one, said("is")).misaligned
    assert response(said("Paris")).token_logprobs is None


@pytest.mark.parametrize(
    ("reason", "refused", "truncated"),
    [("max_output_tokens", False, True), ("content_filter", True, False)],
)
def test_why_a_response_is_incomplete_is_why_it_ended(
    reason: str, *, refused: bool, truncated: bool
) -> None:
    sample = response(status="incomplete", incomplete_details={"reason": reason})
    assert (sample.text, sample.finish_reason) == ("", reason)
    assert (sample.refused, sample.truncated) == (refused, truncated)


def test_a_refusal_is_a_part_of_its_own() -> None:
    part = {"type": "refusal", "refusal": "I cannot."}
    assert response({"type": "message", "content": [part]}).refused


def test_calls_in_a_response_are_canonical() -> None:
    calls = [
        {"type": "function_call", "name": "f", "arguments": '{"b": 1.0}'},
        {"type": "custom_tool_call", "name": "h", "input": "as it is"},
    ]
    assert response(*calls).tool_calls == (
        '[{"args":{"b":1},"name":"f"},{"args":"as it is","name":"h"}]'
    )


def test_usage_of_a_response_is_counted() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 3},
    }
    fields = output(said("Paris"), usage=usage)
    expected = Cost(calls=1, prompt_tokens=5, cached_tokens=3, completion_tokens=9)
    assert read_response(fields).cost == expected
    assert read_response(Response.construct(**fields)) == read_response(fields)


def test_a_failed_response_is_raised() -> None:
    error = {"code": "rate_limit_exceeded", "message": "slowly"}
    with pytest.raises(SamplingError, match="rate_limit_exceeded: slowly") as caught:
        read_response(output(status="failed", error=error))
    assert is_transient(caught.value)


def test_what_is_shown_or_heard_beside_a_text_is_known_to_be_unread() -> None:
    assert only(completion(choice("", message={"audio": {"id": "a"}}))).unread
    image = [part("text", text="Here."), part("image_url", image_url={"url": "x"})]
    assert only(completion(choice(image))).unread
    assert not only(completion(choice([part("text", text="Here.")]))).unread
    drawn = output(said("Here."), part("image_generation_call", result="AAAA"))
    assert read_response(drawn).samples[0].unread
    assert not read_response(output(said("Here."))).samples[0].unread
