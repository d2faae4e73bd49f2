"""How documents reach a guard by each door, and what it does with them there."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage

from snne_guard import render_marks
from snne_guard.errors import ConfigurationError, UncertainAnswerError
from snne_guard.types import Span
from tests.langchain.support import (
    CALLS,
    REFUSAL,
    ask,
    guarded,
    metadata_of,
)
from tests.openai.guarded import PATHS, text_of
from tests.openai.guarded import guarded as guarded_client
from tests.server.support import Running, serving
from tests.support.openai_clients import WAYS, content
from tests.support.openai_server import CHAT, Server, always

ANSWER = "It is oak. Ida made it."
HALF, WHOLE = "The lamp: it is oak.", f"The lamp: {ANSWER}"


# -- LangChain -------------------------------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_a_guard_that_is_turned_off_looks_for_no_documents(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(always(ANSWER)) as server:
        guard = guarded(server, context=failing, min_grounded=0.5)
        monkeypatch.setenv("SNNE_GUARD_DISABLED", "true")
        assert ask(guard, way).text == ANSWER


def test_a_structured_answer_is_never_grounded() -> None:
    schema = {
        "title": "Lamp",
        "type": "object",
        "properties": {"of": {"type": "string"}},
    }
    with Server(always('{"of": "oak"}')) as server:
        guard = guarded(server, context='{"of": "oak"}', min_grounded=0.0)
        chain = guard.with_structured_output(schema, include_raw=True)
        record = metadata_of(chain.invoke("x?")["raw"])
        assert (record["decision"], record["reasons"]) == ("flag", ["ungrounded"])
        strict = guarded(server, min_grounded=0.0, on_uncertain="refuse")
        with pytest.raises(UncertainAnswerError):
            strict.with_structured_output(schema).invoke("x?")


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize(
    "given", [WHOLE, [HALF, "Ida made it."], [Document(WHOLE)], ["Nothing."], []]
)
def test_a_call_can_bring_its_documents(way: str, given: Any) -> None:
    config = {"metadata": {"snne_guard_context": given}}
    with Server(always(ANSWER)) as server:
        guard = guarded(server, context="Nothing.", min_grounded=0.5)
        decision = metadata_of(ask(guard, way, config))["decision"]
        assert metadata_of(ask(guard, way))["decision"] == "flag"
        assert guard.assess("x?", context=given).decision == decision
        found = asyncio.run(guard.aassess("x?", ANSWER, context=given))
        assert found.decision == decision
        bodies = json.dumps([request.body for request in server.requests])
    assert decision == ("flag" if given in (["Nothing."], []) else "accept")
    assert "lamp" not in bodies


@pytest.mark.parametrize(
    ("context", "decision"),
    [
        (lambda messages: messages[0].text, "flag"),
        (lambda messages: [each.text for each in messages], "accept"),
        (lambda _: [], "flag"),
        ("tool_messages", "accept"),
        ("client", "flag"),
        ([HALF, Document("Ida made it.")], "accept"),
    ],
    ids=["first", "all", "none", "tools", "client", "list"],
)
def test_documents_come_from_where_the_option_says(context: Any, decision: str) -> None:
    messages = [HumanMessage("x?"), ToolMessage(WHOLE, tool_call_id="1")]
    with Server(always(ANSWER)) as server:
        guard = guarded(server, context=context, min_grounded=0.5)
        assert (
            metadata_of(ask(guard, "invoke", messages=messages))["decision"] == decision
        )


def test_marks_show_what_is_unsupported() -> None:
    with Server(always(ANSWER)) as server:
        guard = guarded(server, context=HALF, spans=True)
        message = guard.invoke("x?")
    spans = [Span(**span) for span in metadata_of(message)["spans"]]
    marked = render_marks(message.text, spans, min_grounded=0.5)
    assert marked == "It is oak. Ida made it. [?]"
    assert render_marks(message.text, spans, threshold=0.5) == message.text
    html = render_marks(
        message.text, spans, threshold=0.5, min_grounded=0.5, form="html"
    )
    assert '<mark title="uncertainty 0.00, grounded 0.25">Ida' in html
    with pytest.raises(ConfigurationError, match="a threshold or min_grounded"):
        render_marks(message.text, spans)


# -- The other doors -------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_client_can_bring_documents_that_are_not_sent_on(way: str, path: str) -> None:
    options: dict[str, Any] = {"min_grounded": 0.5, "on_uncertain": "refuse"}
    with guarded_client(always(ANSWER), way, **options) as (server, call):
        body = {"extra_body": {"snne_guard_context": [HALF, "Ida made it."]}}
        assert text_of(call(path, **body)) == ANSWER
        assert text_of(call(path)) == REFUSAL
        assert "snne_guard_context" not in json.dumps(
            [request.body for request in server.requests]
        )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "acting",
    [
        {"conversation": "conv_1"},
        {"prompt": {"id": "pmpt_1"}},
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "mcp", "server_label": "x", "server_url": "y"}]},
        {"extra_body": {"plugins": [{"id": "web"}]}},
    ],
)
def test_no_judge_is_asked_where_that_could_act(acting: Any, way: str) -> None:
    options: dict[str, Any] = {"min_grounded": 0.0, "grounding": "judge", "n": 3}
    with guarded_client(always("1: S"), way, context="1: S", **options) as run:
        record = run[1]("responses.create", **acting).snne_guard
    assert len(run[0].requests) == 1
    assert (record["decision"], record["grounded"]) == ("flag", None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_is_turned_off_looks_for_no_documents(
    way: str, path: str, monkeypatch: pytest.MonkeyPatch, *, streamed: bool
) -> None:
    options: dict[str, Any] = {"min_grounded": 0.5, "on_uncertain": "refuse"}
    with guarded_client(always(ANSWER), way, context=failing, **options) as (_, call):
        with pytest.raises(KeyError):
            call(path)
        monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
        said = content(call.stream(path)[0]) if streamed else text_of(call(path))
        assert said == ANSWER


def failing(_: Any) -> Any:
    raise KeyError


def searching(found: list[Any]) -> Any:
    """Return a function that finds the documents, and notes in which thread."""

    def search(_: Any) -> str:
        found.append(threading.current_thread())
        return WHOLE

    return search


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["answer", "stream", "held", "assess", "question"])
def test_no_search_for_documents_holds_up_the_loop(path: str, how: str) -> None:
    places: list[Any] = []
    options: dict[str, Any] = {"context": searching(places), "min_grounded": 0.5}
    if how == "held":
        options["on_uncertain"] = "refuse"
    if how == "question":
        options |= {"context": WHOLE, "question": searching(places)}
    with guarded_client(always(ANSWER), "tasks", **options) as (_, call):
        if how == "assess":
            found = call.wait(call.client.assess(**CHAT))
            assert found.decision == "accept"
        elif how in {"stream", "held"}:
            assert content(call.stream(path)[0]) == ANSWER
        else:
            assert text_of(call(path)) == ANSWER
    assert len(places) == 1
    assert places[0] is not threading.main_thread()


@pytest.mark.parametrize("way", CALLS)
def test_nor_does_it_in_langchain(way: str) -> None:
    places: list[Any] = []
    with Server(always(ANSWER)) as server:
        guard = guarded(server, context=searching(places), min_grounded=0.5)
        assert metadata_of(ask(guard, way))["decision"] == "accept"
    asynchronous = way.startswith("a")
    assert {each is threading.main_thread() for each in places} == {not asynchronous}


@contextmanager
def served(**policy: Any) -> Iterator[tuple[Server, Running]]:
    given = {"min_grounded": 0.5, "on_uncertain": "refuse", **policy}
    with Server(always(ANSWER)) as up, serving(up.url, policy=given) as server:
        yield up, server


def test_the_server_takes_documents_only_where_its_policy_says_so() -> None:
    body = {**CHAT, "snne_guard_context": [WHOLE]}
    with served(context="client") as (up, server):
        assert (
            server.post(json=body).json()["choices"][0]["message"]["content"] == ANSWER
        )
        assert REFUSAL in server.post(json=CHAT).text
        assessed = server.post("/snne/assess", json=body).json()
        assert (assessed["grounded"], assessed["decision"]) == (1.0, "accept")
        for wrong in (3, {"a": 1}, [3], [[WHOLE]]):
            refused = server.post(json={**CHAT, "snne_guard_context": wrong})
            assert refused.status_code == 400
            assert "snne_guard_context" in refused.json()["error"]["message"]
        assert "snne_guard_context" not in json.dumps([r.body for r in up.requests])
    for policy in ({}, {"context": "tool_messages"}, {"context": WHOLE}):
        with served(**policy) as (up, server):
            for path in ("/v1/chat/completions", "/snne/assess"):
                refused = server.post(path, json=body)
                assert refused.status_code == 400
                assert "takes no snne_guard_context" in refused.text
            with pytest.raises(openai.BadRequestError):
                server.client().responses.create(
                    model="m", input="x?", extra_body={"snne_guard_context": WHOLE}
                )
            assert not up.requests
