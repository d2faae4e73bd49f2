from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.support.chat_server import (
    Billed,
    ChatServer,
    Reply,
    Request,
    ToolCall,
    Usage,
    always,
    chat_openai,
    cycle,
    error,
    failing,
    ignoring_n,
    rejecting,
    rejecting_n,
)

QUESTION = "What is the capital of France?"


def raw(server: ChatServer, **options: Any) -> Any:
    api = openai.OpenAI(api_key="test", base_url=server.url, max_retries=0, timeout=120)
    with api:
        found = api.chat.completions.create(
            model="test-model",
            messages=[{"role": "user", "content": QUESTION}],
            **options,
        )
        return list(found) if options.get("stream") else found


def test_answers_and_remembers_what_it_was_asked() -> None:
    with ChatServer(always("Paris")) as server:
        message = chat_openai(server, temperature=0.3).invoke(QUESTION)
        (request,) = server.requests
    assert message.content == "Paris"
    assert message.response_metadata["model_name"] == "test-model"
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 6
    assert message.usage_metadata["output_tokens"] == 1
    assert server.billed == Billed(requests=1, prompt_tokens=6, completion_tokens=1)
    assert request.method == "POST"
    assert request.path.endswith("/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer test"
    assert (request.prompt, request.n, request.temperature) == (QUESTION, 1, 0.3)
    assert not request.stream
    assert not request.logprobs


def test_repeats_the_last_message_by_default() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with ChatServer() as server:
        parts: list[Any] = [{"type": "text", "text": "look at"}, image]
        message = chat_openai(server).invoke([HumanMessage(parts)])
    assert message.content == "look at"


def test_gives_as_many_choices_as_asked_for() -> None:
    with ChatServer(cycle(["a", "b", "c"])) as server:
        first, second = raw(server, n=2), raw(server, n=3)
    assert [choice.message.content for choice in first.choices] == ["a", "b"]
    assert [choice.message.content for choice in second.choices] == ["c", "a", "b"]
    assert [choice.index for choice in second.choices] == [0, 1, 2]
    assert server.billed == Billed(requests=2, prompt_tokens=12, completion_tokens=5)


def test_replies_in_sequence_and_repeats_the_last() -> None:
    with ChatServer([Reply(texts=("a",)), Reply(texts=("b",))]) as server:
        found = [chat_openai(server).invoke("?").content for _ in range(3)]
    assert found == ["a", "b", "b"]


def test_ignores_n_and_returns_fewer_choices() -> None:
    with ChatServer(ignoring_n(["a", "b"])) as server:
        assert len(raw(server, n=5).choices) == 1
        server.script = always("x", choices=3)
        assert len(raw(server, n=5).choices) == 3


def test_returns_choices_in_another_order() -> None:
    reply = Reply(texts=("a", "b", "c"), order=(2, 0, 1))
    with ChatServer([reply]) as server:
        found = raw(server, n=3).choices
    assert [(c.index, c.message.content) for c in found] == [
        (2, "c"),
        (0, "a"),
        (1, "b"),
    ]


def test_gives_log_probabilities_only_when_asked() -> None:
    reply = Reply(texts=("it is Paris", "Rome"), logprobs=([-0.5, -1.0, -2.0], None))
    with ChatServer([reply]) as server:
        silent = raw(server, n=2).choices
        first, second = raw(server, n=2, logprobs=True).choices
        server.script = always("two words")
        (auto,) = raw(server, logprobs=True).choices
        server.script = always("two words", logprobs=None)
        (never,) = raw(server, logprobs=True).choices
        server.script = always("one", logprobs=([-1.0, -2.0],))
        (more,) = raw(server, logprobs=True).choices
    assert [choice.logprobs for choice in silent] == [None, None]
    assert [t.logprob for t in first.logprobs.content] == [-0.5, -1.0, -2.0]
    assert [t.token for t in first.logprobs.content] == ["it", " is", " Paris"]
    assert second.logprobs is None
    assert [t.logprob for t in auto.logprobs.content] == [-0.1, -0.1]
    assert never.logprobs is None
    assert [t.token for t in more.logprobs.content] == ["?", "?"]


def test_calls_tools() -> None:
    call = ToolCall(name="weather", arguments={"city": "Bern"})
    with ChatServer([Reply(tool_calls=([call],))]) as server:
        message = chat_openai(server).invoke("?")
    assert isinstance(message, AIMessage)
    assert message.content == ""
    assert [(c["name"], c["args"]) for c in message.tool_calls] == [
        ("weather", {"city": "Bern"})
    ]
    assert message.response_metadata["finish_reason"] == "tool_calls"


def test_sends_unreadable_arguments_unchanged() -> None:
    call = ToolCall(name="weather", arguments="{", id="c1")
    with ChatServer([Reply(tool_calls=([call],), texts=("let me see",))]) as server:
        message = chat_openai(server).invoke("?")
    assert isinstance(message, AIMessage)
    assert message.content == "let me see"
    assert message.invalid_tool_calls[0]["id"] == "c1"


def test_refuses_reasons_and_reports_another_model() -> None:
    reply = Reply(
        texts=("", "b"),
        refusals=("I cannot", None),
        reasoning=("hmm", "well"),
        finish_reasons=("content_filter", "length"),
        model="fallback-model",
        usage=Usage(prompt=9, completion=4, cached=3, reasoning=2),
    )
    with ChatServer([reply]) as server:
        found = raw(server, n=2)
    first, second = found.choices
    assert (first.message.content, first.message.refusal) == (None, "I cannot")
    assert (second.message.content, second.message.refusal) == ("b", None)
    assert second.message.reasoning_content == "well"
    assert [first.finish_reason, second.finish_reason] == ["content_filter", "length"]
    assert found.model == "fallback-model"
    assert found.usage.prompt_tokens_details.cached_tokens == 3
    assert found.usage.completion_tokens_details.reasoning_tokens == 2
    assert server.billed == Billed(
        requests=1, prompt_tokens=9, completion_tokens=4, cached_tokens=3
    )
    assert server.billed.total_tokens == 13


def test_leaves_usage_out_and_still_counts() -> None:
    with ChatServer(always("It is Paris", usage=None)) as server:
        message = chat_openai(server).invoke(QUESTION)
    assert isinstance(message, AIMessage)
    assert message.usage_metadata is None
    assert server.billed == Billed(requests=1, prompt_tokens=6, completion_tokens=3)


def test_streams_words_with_log_probabilities_and_usage() -> None:
    with ChatServer(always("it is Paris")) as server:
        model = chat_openai(server, logprobs=True, stream_usage=True)
        parts = list(model.stream(QUESTION))
        server.script = always("it is Paris", usage=None)
        silent = list(model.stream(QUESTION))
    assert [part.content for part in parts if part.content] == ["it", " is", " Paris"]
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 3
    entries = whole.response_metadata["logprobs"]["content"]
    assert [entry["logprob"] for entry in entries] == [-0.1, -0.1, -0.1]
    assert whole.response_metadata["finish_reason"] == "stop"
    assert [part.usage_metadata for part in silent if part.usage_metadata] == []
    assert server.billed.requests == 2


def test_streams_choices_interleaved() -> None:
    with ChatServer([Reply(texts=("a b", "c"))]) as server:
        order = [c.choices[0].index for c in raw(server, n=2, stream=True)]
    assert order == [0, 1, 0, 1, 0, 1, 0]


def test_streams_tool_calls_and_refusals() -> None:
    call = ToolCall(name="weather", arguments={"city": "Bern"})
    with ChatServer([Reply(tool_calls=([call],)), Reply(refusals=("I won't",))]) as s:
        parts = list(chat_openai(s).stream("?"))
        whole = parts[0]
        for part in parts[1:]:
            whole += part
        refused = raw(s, stream=True)
    assert isinstance(whole, AIMessage)
    assert whole.tool_calls[0]["args"] == {"city": "Bern"}
    said = [part.choices[0].delta.refusal for part in refused]
    assert said == [None, "I", " won't", None]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_fails_on_demand(
    status: int, expected: type[openai.APIStatusError], *, stream: bool
) -> None:
    with (
        ChatServer([error(status, "no", retry_after=1.5)]) as server,
        pytest.raises(expected, match="no") as caught,
    ):
        raw(server, stream=stream)
    assert caught.value.response.headers["retry-after"] == "1.5"
    assert server.billed == Billed()


def test_sends_a_body_that_is_no_json() -> None:
    with ChatServer([Reply(status=502, body="<html>bad gateway</html>")]) as server:
        with pytest.raises(openai.InternalServerError, match="502"):
            raw(server)
        server.script = always("x", status=500)
        with pytest.raises(openai.InternalServerError, match="status 500"):
            raw(server)


def test_rejects_n_and_single_parameters() -> None:
    with ChatServer(rejecting_n(always("a"), max_n=2)) as server:
        assert len(raw(server, n=2).choices) == 2
        with pytest.raises(openai.BadRequestError, match="n must be at most 2"):
            raw(server, n=3)
        server.script = rejecting("logprobs", always("a"))
        assert len(raw(server, n=3).choices) == 3
        with pytest.raises(openai.BadRequestError, match="'logprobs'") as caught:
            raw(server, logprobs=True)
    assert caught.value.param == "logprobs"


def test_fails_the_same_share_for_the_same_seed() -> None:
    def outcomes() -> list[bool]:
        found = []
        with ChatServer(failing(always("a"), rate=0.5, seed=3)) as server:
            for _ in range(20):
                try:
                    raw(server)
                    found.append(True)
                except openai.InternalServerError:
                    found.append(False)
        return found

    first = outcomes()
    assert first == outcomes()
    assert 3 < sum(first) < 17


def test_what_fails_hangs_on_no_order_of_arrival() -> None:
    def failed(order: Sequence[str], **options: Any) -> Counter[str]:
        script, found = failing(always("a"), rate=0.5, **options), Counter[str]()
        for index, prompt in enumerate(order):
            body = {"messages": [{"content": prompt}]}
            request = Request(
                index=index, method="POST", path="", headers={}, body=body, arrived=0.0
            )
            found[prompt] += script(request).status == 503
        return found

    names = [f"q{number}" for number in range(200)]
    found = failed(names * 4)
    assert found == failed([name for name in names for _ in range(4)])
    assert max(found.values()) == 4
    assert sum(found.values()) == pytest.approx(400, abs=50)
    found = failed(names * 4, at_most=3)
    assert max(found.values()) == 3
    assert sum(found.values()) == pytest.approx(390, abs=50)


def test_knows_no_other_path() -> None:
    with (
        ChatServer() as server,
        openai.OpenAI(api_key="test", base_url=server.url, max_retries=0) as api,
        pytest.raises(openai.NotFoundError, match="/v1/models"),
    ):
        api.models.list()
    assert server.requests[0].body == {}


def test_gives_each_thread_its_own_texts() -> None:
    numbers = [str(i) for i in range(40)]
    with ChatServer(cycle(numbers)) as server, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: raw(server, n=4), range(10)))
    texts = [choice.message.content for one in found for choice in one.choices]
    assert sorted(texts, key=int) == numbers
