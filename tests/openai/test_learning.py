"""No request teaches what weakens another, whoever sent it and whatever it asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import openai
import pytest

from snne_guard import SNNEGuard
from snne_guard.openai import guard_client
from tests.langchain.support import chat_openai
from tests.support.openai_server import CHAT, Answer, Asked, Server, whole

UNSURE = ("Rome", "Oslo", "Bern", "Lima", "Cairo", "Quito", "Delhi")
NARROW = {"top_k": 1, "top_p": 0.01, "min_p": 1.0, "seed": 7, "best_of": 9}
REFUSING: dict[str, Any] = {"threshold": 0.4, "on_uncertain": "refuse"}

Rule = Callable[[Asked], str | None]
Call = Callable[..., dict[str, Any]]


class Unsure:
    """A server that knows nothing: its hot draws differ, its narrowed ones do not.

    Args:
        rule: Says why it refuses a request, None where it does not.
        status: With which it does.
    """

    def __init__(self, rule: Rule = lambda _: None, *, status: int = 400) -> None:
        self._rule, self._status, self._drawn = rule, status, count()

    def __call__(self, asked: Asked) -> Answer:
        why = self._rule(asked)
        if why is not None:
            body = {"error": {"message": why, "param": None, "code": None}}
            return Answer(status=self._status, body=body)
        narrowed = any(f'"{name}"' in json.dumps(asked.body) for name in NARROW)
        if not asked.body.get("temperature") or narrowed:
            return Answer(texts=["Paris"])
        return Answer(texts=[UNSURE[next(self._drawn) % len(UNSURE)] for _ in range(9)])


@pytest.fixture(params=["client", "chat model"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Call]:
    """Returns a way to ask a server by a guard that all calls share."""

    def by_client(server: Server, **settings: Any) -> Call:
        own = openai.OpenAI(api_key="k", base_url=server.url, max_retries=0)
        client = guard_client(own, **settings)

        def call(question: str = "Where?", **options: Any) -> dict[str, Any]:
            turns: Any = [{"role": "user", "content": question}]
            answer = client.chat.completions.create(
                model="m", messages=turns, extra_body=options
            )
            record: dict[str, Any] = answer.model_extra["snne_guard"]  # type: ignore[index]
            return record

        return call

    def by_chat_model(server: Server, **settings: Any) -> Call:
        guard = SNNEGuard(chat_openai(server, model="m"), **settings)

        def call(question: str = "Where?", **options: Any) -> dict[str, Any]:
            direct = {"temperature", "top_p", "reasoning_effort", "seed"}
            named = {name: options[name] for name in direct & options.keys()}
            rest = {k: v for k, v in options.items() if k not in named}
            bound = guard.bind(**named, **({"extra_body": rest} if rest else {}))
            message = bound.invoke(question)
            record: dict[str, Any] = message.response_metadata["snne_guard"]
            return record

        return call

    return by_client if request.param == "client" else by_chat_model


def both(asked: Asked) -> str | None:
    """Take a temperature or top_p, but not both, as some models of Anthropic do."""
    if {"temperature", "top_p"} <= asked.body.keys():
        return "temperature and top_p cannot both be specified. Use only one."
    return None


def test_what_one_client_sends_does_not_open_the_guard_for_another(ask: Any) -> None:
    with Server(Unsure(both)) as server:
        call = ask(server, **REFUSING)
        assert call(temperature=0)["decision"] == "refuse"
        for _ in range(2):
            assert call(top_p=0.9)["decision"] == "refuse"
            assert call(temperature=0)["decision"] == "refuse"


@pytest.mark.parametrize("name", NARROW)
def test_a_client_cannot_make_samples_equal(ask: Any, name: str) -> None:
    with Server(Unsure()) as server:
        call = ask(server, **REFUSING)
        record = call(**{name: NARROW[name]})
        assert record["decision"] == "refuse"
        sent = [asked.body for asked in server.samples]
        assert not any(name in body for body in sent)
        assert {body["temperature"] for body in sent} == {1.0}


@pytest.mark.parametrize(
    "options",
    [
        {"sampling": {"top_k": 1}},
        {"gateway": {"forwarded": {"temperature": 0, "seed": 7}}},
        {"generation": [{"top_p": 0.01}]},
        {"sampler_settings": {"min_p": 1.0, "grammar": "root ::= [a-z]+"}},
        {"extra_body": {"extra_body": {"engine": {"best_of": 9}}}},
    ],
)
def test_no_name_that_nobody_knows_hides_what_narrows(
    ask: Any, options: dict[str, Any]
) -> None:
    with Server(Unsure()) as server:
        record = ask(server, **REFUSING)(**options)
        assert record["decision"] == "refuse"
        assert {asked.body["temperature"] for asked in server.samples} == {1.0}
        (answer,) = server.answers
        assert options.items() <= answer.body.items()  # as the client sent it


def as_vllm(asked: Asked) -> Answer:
    """Give a reply the id of the request, where that has one."""
    named = asked.headers.get("x-request-id") or asked.body.get("request_id")
    reply = whole(asked, Answer())
    return Answer(body={**reply, "id": f"chatcmpl-{named}"} if named else reply)


@pytest.mark.parametrize("named", [{"request_id": "r1"}, {"X-Request-Id": "r1"}])
@pytest.mark.parametrize("chat_model", [True, False])
def test_the_id_of_a_request_is_not_that_of_its_samples(
    named: dict[str, str], *, chat_model: bool
) -> None:
    place = "extra_body" if "request_id" in named else "extra_headers"
    options: Any = {place: named}
    with Server(as_vllm) as server:
        if chat_model:
            guard = SNNEGuard(chat_openai(server), **REFUSING).bind(**options)
            record = guard.invoke("Where?").response_metadata["snne_guard"]
        else:
            own = openai.OpenAI(api_key="k", base_url=server.url, max_retries=0)
            client = guard_client(own, **REFUSING)
            answer: Any = client.chat.completions.create(**CHAT, **options)
            record = answer.snne_guard
        assert (record["decision"], record["reasons"]) == ("accept", [])
        (asked,) = server.answers
        assert "r1" in {asked.body.get("request_id"), asked.headers.get("x-request-id")}


@pytest.mark.parametrize(
    ("status", "question", "why", "options"),
    [
        (400, "Does the temperature rise?", "Flagged: Does the temperature rise?", {}),
        (403, "Is logprobs or n better?", "Blocked near 'logprobs or n better'", {}),
        (404, "Where?", f"No place for {'the temperature is n degrees ' * 2!r}", {}),
        (422, "Where?", "The response was filtered by the content policy.", {}),
        (400, "Where?", "Error while downloading file.", {}),
        (422, "Heat it", "Failed to parse tool call: set temperature to 20", {}),
        (400, "Heat it", "Model output blocked: 'temperature is n'", {}),
        (403, "Does the temperature rise?", "Blocked term: temperature rise", {}),
        (500, "Heat it", 'Failed at pos 9: {"temperature": 20, "invalid"', {}),
        (400, "Where?", "Invalid client: temperature", {"user": "temperature"}),
        (400, "Where?", "Invalid client: n", {"safety_identifier": "n"}),
    ],
)
def test_a_stray_rejection_teaches_nothing(
    ask: Any, status: int, question: str, why: str, options: dict[str, Any]
) -> None:
    strays = iter([why])

    def once(asked: Asked) -> str | None:
        return next(strays, None) if asked.is_sample else None

    with Server(Unsure(once, status=status)) as server:
        call = ask(server, **REFUSING)
        call(question, **options)
        server.requests.clear()
        record = call("Where?")
        assert (record["decision"], record["method"]) == ("refuse", "wsnne")
        assert record["reasons"] == []
        assert all(asked.logprobs for asked in server.requests)
        assert {asked.body["temperature"] for asked in server.samples} == {1.0}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (403, "You are not allowed to request logprobs from this model"),
        (400, "logprobs are not supported with reasoning models."),
        (404, "No endpoints found that support the parameter logprobs"),
        (422, "logprobs: extra fields not permitted"),
        (400, "Bad request"),
    ],
)
def test_a_model_without_log_probabilities_answers(
    ask: Any, status: int, why: str
) -> None:
    def rule(asked: Asked) -> str | None:
        return why if asked.logprobs else None

    with Server(Unsure(rule, status=status)) as server:
        call = ask(server, **REFUSING)
        for _ in range(2):
            server.requests.clear()
            record = call()
            assert (record["decision"], record["method"]) == ("refuse", "snne")
            assert record["reasons"] == ["logprobs_missing"]
        # A rejection that names its cause is learnt, any other is not.
        assert len(server.requests) == (2 if "logprobs" in why else 4)


OTHERS: dict[str, tuple[Any, Any]] = {
    "model": ("o3", "gpt-4.1"),
    "models": (["o3"], ["gpt-4.1"]),
    "provider": ({"only": ["a"]}, {"only": ["b"]}),
    "chat_template_kwargs": ({"enable_thinking": True}, {"enable_thinking": False}),
    "verbosity": ("low", "high"),
    "reasoning_effort": ("low", "none"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_one_value_is_refused_holds_for_no_other(ask: Any, name: str) -> None:
    one, other = OTHERS[name]

    def rule(asked: Asked) -> str | None:
        hot = "temperature" in asked.body and asked.body.get(name) == one
        return "Unsupported parameter: 'temperature'" if hot else None

    with Server(Unsure(rule)) as server:
        call = ask(server, **REFUSING)
        call(**{name: one})
        assert call(**{name: other})["decision"] == "refuse"


def test_samples_that_may_be_greedy_mean_nothing(ask: Any) -> None:
    def rule(asked: Asked) -> str | None:
        hot = (asked.body.get("temperature") or 0) > 0.9
        return "temperature must be below 0.9" if hot else None

    with Server(Unsure(rule)) as server:
        call = ask(server, **REFUSING)
        for _ in range(2):
            record = call(temperature=0.2)
            assert (record["decision"], record["uncertainty"]) == ("refuse", None)
            assert "greedy_samples" in record["reasons"]


def test_a_model_that_takes_no_temperature_at_all_is_scored(ask: Any) -> None:
    def rule(asked: Asked) -> str | None:
        if "temperature" in asked.body:
            return "'temperature' does not support 1.0 with this model."
        return None

    with Server(Unsure(rule)) as server:
        call = ask(server, threshold=0.4)
        for requests in (3, 2):
            server.requests.clear()
            record = call()
            assert (record["n_used"], record["reasons"]) == (5, ["temperature_unset"])
            assert len(server.requests) == requests
