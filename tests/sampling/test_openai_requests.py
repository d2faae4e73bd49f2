"""What requests for answers and samples carry, and what users may not set."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.collect import Draw
from snne_guard.sampling.openai_requests import Endpoint, acts
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.settings import Settings

ITEMS = [{"role": "user", "content": "x"}]
TAKES_ALL = Settings(logprobs=True, temperature=True, max_tokens=True)
TAKES_NOTHING = Settings(logprobs=False, temperature=False)


def client(host: str = "127.0.0.1") -> openai.OpenAI:
    return openai.OpenAI(api_key="test", base_url=f"https://{host}/v1")


def endpoint(api: str = "chat", host: str = "127.0.0.1", **options: Any) -> Endpoint:
    return Endpoint.of(
        client(host), model="m", api=api, options=options, asynchronous=False
    )


def sample(
    whom: Endpoint,
    *,
    settings: Settings = TAKES_ALL,
    index: int = 0,
    n: int = 1,
    limit: int | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Return the options of a request for a sample, besides model and messages."""
    plan = SamplingPlan(sample_max_tokens=limit)
    request = whom.sample(
        ITEMS, whom.own(given), Draw(index=index, n=n), plan=plan, settings=settings
    )
    assert request.pop("model") == "m"
    assert request.pop(whom.api.messages) == ITEMS
    return request


def test_the_answer_is_the_user_s_own_request() -> None:
    whom = endpoint(temperature=0, seed=3, store=True)
    own = whom.own({"max_tokens": 5})
    request = {"model": "m", "messages": ITEMS, "temperature": 0, "seed": 3}
    request |= {"store": True, "max_tokens": 5}
    assert whom.answer(ITEMS, own) == request
    assert whom.added(own) == {"logprobs": True}


def test_log_probabilities_of_responses_are_included() -> None:
    whom = endpoint("responses")
    own = whom.own({"include": ["reasoning.encrypted_content"]})
    assert whom.answer(ITEMS, own)["input"] == ITEMS
    asked = whom.added(own)
    assert asked == {
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"]
    }
    assert not whom.asks_logprobs(own)
    assert whom.asks_logprobs(asked)
    # Where samples get none, the user's wish for the answer is not theirs.
    assert sample(whom, settings=TAKES_NOTHING, include=asked["include"]) == {
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }


def test_a_sample_is_drawn_hot_and_leaves_no_trace() -> None:
    whom = endpoint(temperature=0, logprobs=True, top_logprobs=5, top_p=0.9)
    assert sample(whom, n=3, stop=["."], store=True, metadata={"a": "b"}) == {
        "temperature": 1.0,
        "top_p": 0.9,
        "stop": ["."],
        "n": 3,
        "logprobs": True,
        "store": False,
    }
    assert sample(whom, settings=TAKES_NOTHING) == {"top_p": 0.9}
    assert sample(endpoint("responses")) == {
        "temperature": 1.0,
        "include": ["message.output_text.logprobs"],
        "store": False,
    }


@pytest.mark.parametrize(
    ("host", "stores"),
    [
        ("api.openai.com", True),
        ("eu.api.openai.com", True),
        ("mine.openai.azure.com", False),
        ("openai.example.com", False),
        ("openrouter.ai", False),
    ],
)
def test_who_stores_by_itself_is_told_not_to(host: str, *, stores: bool) -> None:
    assert ("store" in sample(endpoint(host=host))) is stores


def test_each_sample_has_a_seed_of_its_own() -> None:
    seeds = [sample(endpoint(seed=7), index=index)["seed"] for index in range(3)]
    assert seeds == [8, 9, 10]
    body = {"seed": 7, "temperature": 0, "top_k": 5, "max_tokens": 50}
    found = sample(endpoint(extra_body=body), index=1, limit=9)
    assert found["seed"] == 9
    assert found["extra_body"] == {"top_k": 5, "max_tokens": 9}
    assert "seed" not in sample(endpoint())


@pytest.mark.parametrize(
    ("api", "given", "settings", "expected"),
    [
        ("chat", {}, TAKES_ALL, {"max_tokens": 9}),
        ("chat", {}, TAKES_NOTHING, {"max_completion_tokens": 9}),
        (
            "chat",
            {"max_completion_tokens": 50},
            TAKES_ALL,
            {"max_completion_tokens": 9},
        ),
        ("responses", {}, TAKES_ALL, {"max_output_tokens": 9}),
        ("responses", {"max_output_tokens": 50}, TAKES_ALL, {"max_output_tokens": 9}),
    ],
)
def test_the_limit_of_a_sample_goes_where_the_user_s_is(
    api: str, given: Any, settings: Settings, expected: Any
) -> None:
    found = sample(endpoint(api), settings=settings, limit=9, **given)
    assert {k: v for k, v in found.items() if k.endswith("tokens")} == expected


def test_what_nobody_gives_is_not_there() -> None:
    own = endpoint(tools=openai.NOT_GIVEN).own({"stop": openai.omit, "seed": 1})
    assert own == {"seed": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "mcp", "server_url": "x"}]},
        {"tools": ["odd"]},
        {"web_search_options": {}},
        {"conversation": "conv_1"},
        {"background": True},
        {"prompt": {"id": "pmpt_1"}},
        {"extra_body": {"tools": [{"type": "code_interpreter"}]}},
    ],
)
def test_what_does_more_than_answer_is_recognised(options: dict[str, Any]) -> None:
    assert acts(options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tools": []},
        {"tools": [{"type": "function"}, {"type": "custom"}]},
        {"background": False, "conversation": None},
        {"previous_response_id": "resp_1"},
        {"extra_body": {"top_k": 5}},
    ],
)
def test_what_only_answers_is_let_through(options: dict[str, Any]) -> None:
    assert not acts(options)


@pytest.mark.parametrize("name", ["messages", "input", "model", "n", "stream"])
def test_what_each_request_sets_itself_is_not_the_user_s(name: str) -> None:
    given: dict[str, Any] = {name: 1}
    with pytest.raises(ConfigurationError, match=f"{name!r} is set for each request"):
        endpoint(**given)
    with pytest.raises(ConfigurationError, match=f"{name!r} is set for each request"):
        endpoint().own(given)


class _NoApi:
    def with_options(self) -> None:
        pass


@pytest.mark.parametrize(
    ("whom", "asynchronous", "expected"),
    [
        (openai.AsyncOpenAI(api_key="x"), False, r"OpenAI\(\) .*; got AsyncOpenAI"),
        (client(), True, r"AsyncOpenAI\(\) .*; got OpenAI"),
        (_NoApi(), False, "has the 'chat' API; got _NoApi"),
        (client().chat.completions, False, "got Completions"),
        (None, False, "got NoneType"),
    ],
)
def test_a_client_of_the_right_kind_is_needed(
    whom: Any, *, asynchronous: bool, expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        Endpoint.of(
            whom, model="m", api="chat", options=None, asynchronous=asynchronous
        )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"api": "assistants"}, "api must be one of 'chat', 'responses'; got 'ass"),
        ({"model": ""}, "model must be the name of a model; got ''"),
    ],
)
def test_api_and_model_are_checked(options: dict[str, Any], expected: str) -> None:
    given = {"model": "m", "api": "chat", "options": None, **options}
    with pytest.raises(ConfigurationError, match=expected):
        Endpoint.of(client(), asynchronous=False, **given)


def test_samples_have_one_layer_of_retries() -> None:
    whom = endpoint()
    assert whom.client.max_retries > 0
    drawing: Any = whom.draw
    assert drawing.__self__._client.max_retries == 0
    own: Any = whom.ask
    assert own.__self__._client is whom.client


def test_an_endpoint_says_who_serves_it() -> None:
    azure = openai.AzureOpenAI(
        azure_endpoint="https://127.0.0.1", api_key="x", api_version="2024-10-21"
    )
    whom = Endpoint.of(azure, model="m", api="chat", options=None, asynchronous=False)
    assert (whom.provider, endpoint().provider) == ("azure", "openai")
