"""Which kinds of content are read, and which leave a reply unread."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.content import KNOWN_BLOCK_TYPES

from snne_guard.sampling.blocks import has_unread, is_unread
from snne_guard.sampling.langchain_messages import read_message
from snne_guard.sampling.openai_messages import read_completion, read_response

TEXT = {"type": "text", "text": "Paris"}

READ: list[dict[str, Any]] = [
    {"type": "text", "text": "Paris", "annotations": [{"type": "url_citation"}]},
    {"type": "text", "text": "Paris", "citations": [{"url": "https://a.example"}]},
    {"type": "output_text", "text": "Paris"},
    {"type": "refusal", "refusal": "No."},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "France?"}]},
    {"type": "reasoning_content", "reasoning_content": {"text": "France?"}},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "thinking", "thinking": "France?", "signature": "x"},
    {"type": "citation", "url": "https://a.example"},
    {"type": "compaction", "content": "earlier"},
    {"type": "fallback"},
    {"type": "non_standard_annotation", "value": {}},
    {"type": "reference", "reference_ids": [1]},
    {"type": "search_result", "source": "https://a.example"},
    {"type": "custom_tool_call", "name": "pay", "input": "5"},
    {"type": "function_call", "name": "pay", "arguments": "{}"},
    {"type": "input_json_delta", "partial_json": "{}"},
    {"type": "invalid_tool_call", "name": "pay", "args": "{"},
    {"type": "tool_call", "name": "pay", "args": {}},
    {"type": "tool_call_chunk", "name": "pay", "args": "{}"},
    {"type": "tool_use", "name": "pay", "input": {}},
    {"type": "code_execution_result", "code_execution_result": "1"},
    {"type": "code_interpreter_call", "outputs": None},
    {"type": "code_interpreter_call", "outputs": [{"type": "logs", "logs": "1"}]},
    {"type": "executable_code", "executable_code": "print(1)"},
    {"type": "file_search_call", "results": []},
    {"type": "mcp_call", "output": "Paris"},
    {"type": "mcp_list_tools", "tools": []},
    {"type": "mcp_tool_use", "name": "look"},
    {"type": "mcp_tool_result", "content": []},
    {"type": "server_tool_call", "name": "web_search"},
    {"type": "server_tool_call_chunk", "name": "web_search"},
    {"type": "server_tool_result", "output": "Paris"},
    {"type": "server_tool_use", "name": "web_search"},
    {"type": "tool_result", "content": []},
    {"type": "tool_search_call"},
    {"type": "tool_search_output"},
    {"type": "web_fetch_tool_result", "content": {}},
    {"type": "web_search_call", "action": {"query": "Paris"}},
    {"type": "web_search_tool_result", "content": []},
    {"type": "bash_code_execution_tool_result", "content": {}},
    {"type": "non_standard", "value": {"type": "mcp_list_tools", "tools": []}},
    {"type": "non_standard", "value": {"type": "refusal", "refusal": "No."}},
    {"index": 1},
]

UNREAD: list[dict[str, Any]] = [
    {"type": "apply_patch_call", "operation": {}},
    {"type": "audio", "base64": "AAAA"},
    {"type": "code_interpreter_call", "outputs": [{"type": "image", "url": "x"}]},
    {"type": "computer_call", "action": {"type": "click"}},
    {"type": "container_upload", "file_id": "f"},
    {"type": "document", "document": {}},
    {"type": "file", "file_id": "f"},
    {"type": "guess_of_next_year", "value": 1},
    {"type": "image", "base64": "AAAA"},
    {"type": "image_file", "image_file": {"file_id": "x"}},
    {"type": "image_generation_call", "result": "AAAA"},
    {"type": "image_url", "image_url": {"url": "x"}},
    {"type": "inline_data", "data": "x"},
    {"type": "input_audio", "input_audio": {}},
    {"type": "json", "json": {"a": 1}},
    {"type": "local_shell_call", "action": {}},
    {"type": "mcp_approval_request", "name": "pay"},
    {"type": "media", "data": "x"},
    {"type": "non_standard", "value": {"x": 1}},
    {"type": "non_standard", "value": {"type": "image_file"}},
    {"type": "non_standard", "value": None},
    {"type": "output_audio", "data": "x"},
    {"type": "output_image", "data": "x"},
    {"type": "resource_link", "uri": "x"},
    {"type": "shell_call", "action": {}},
    {"type": "text-plain", "text": "x"},
    {"type": "video", "base64": "AAAA"},
    {"type": "video_url", "video_url": {"url": "x"}},
    {"type": None, "data": "x"},
    {"type": 5},
    {"image": {"source": {"bytes": b"x"}}},
]


def named(block: dict[str, Any]) -> str:
    return str(block.get("type", "without_type"))


@pytest.mark.parametrize("block", READ)
def test_what_is_read_or_no_answer_leaves_a_reply_to_be_scored(
    block: dict[str, Any],
) -> None:
    assert not is_unread(block)
    assert not read_message(AIMessage(content=[TEXT, block])).unread


@pytest.mark.parametrize("block", UNREAD)
def test_what_nothing_compares_is_known_to_be_unread(block: dict[str, Any]) -> None:
    assert is_unread(block)
    sample = read_message(AIMessage(content=[TEXT, block]))
    assert (sample.text, sample.unread) == ("Paris", True)


def test_every_kind_that_langchain_names_is_known() -> None:
    tested = {named(block) for block in (*READ, *UNREAD)}
    assert tested >= KNOWN_BLOCK_TYPES


def test_a_text_has_no_blocks() -> None:
    assert not has_unread("Paris")
    assert not has_unread(None)
    assert not has_unread(["Paris", TEXT])


@pytest.mark.parametrize(
    ("aside", "unread"),
    [
        ({"audio": {"id": "a"}}, True),
        ({"images": [{"type": "image_url"}]}, True),
        ({"images": []}, False),
        ({"tool_outputs": [{"type": "image_generation_call"}]}, True),
        ({"tool_outputs": [{"type": "computer_call"}]}, True),
        ({"tool_outputs": [{"type": "web_search_call"}]}, False),
        ({"reasoning_content": "France?"}, False),
    ],
)
def test_what_stands_beside_a_text_counts(
    aside: dict[str, Any], *, unread: bool
) -> None:
    message = AIMessage("Paris", additional_kwargs=aside)
    assert read_message(message).unread is unread


@pytest.mark.parametrize(
    ("item", "unread"),
    [
        ({"type": "web_search_call", "action": {"query": "Paris"}}, False),
        ({"type": "reasoning", "summary": []}, False),
        ({"type": "computer_call", "action": {"type": "click"}}, True),
        ({"type": "image_generation_call", "result": "AAAA"}, True),
    ],
)
def test_items_of_a_response_are_told_apart(
    item: dict[str, Any], *, unread: bool
) -> None:
    said = {"type": "message", "content": [{"type": "output_text", "text": "Paris"}]}
    fields = {"id": "r", "status": "completed", "output": [item, said]}
    (sample,) = read_response(fields).samples
    assert (sample.text, sample.unread) == ("Paris", unread)


def test_images_beside_a_completion_are_unread() -> None:
    for images, unread in (([{"type": "image_url"}], True), ([], False), (None, False)):
        message = {"role": "assistant", "content": "Paris", "images": images}
        fields = {"choices": [{"index": 0, "message": message}]}
        assert read_completion(fields).samples[0].unread is unread
