from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.server import create_app, load_config
from snne_guard.settings import REFUSAL
from tests.server.support import Running, serving
from tests.support.openai_server import APART, CHAT, RESPONSES, Server, always, split


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with Server(always()) as server:
        yield server


@pytest.fixture
def upstream(shared: Server) -> Server:
    shared.script = split("Paris", *APART)
    shared.requests.clear()
    return shared


@pytest.fixture(scope="module")
def flagging(shared: Server) -> Iterator[Running]:
    with serving(shared.url, policy={"threshold": 0.4}) as running:
        yield running


@pytest.fixture(scope="module")
def refusing(shared: Server) -> Iterator[Running]:
    policy = {"threshold": 0.4, "on_uncertain": "refuse"}
    with serving(shared.url, policy=policy) as running:
        yield running


# Before each test, whether it asks for the upstream or not.
pytestmark = pytest.mark.usefixtures("upstream")


def record_of(answer: openai.BaseModel) -> dict[str, Any]:
    found: Any = answer.to_dict()["snne_guard"]
    return {**found}


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize(
    ("fixture", "decision", "text"),
    [("flagging", "flag", "Paris"), ("refusing", "refuse", REFUSAL)],
)
def test_an_answer_carries_its_assessment_in_the_body_and_in_headers(
    fixture: str, decision: str, text: str, request: pytest.FixtureRequest
) -> None:
    client = request.getfixturevalue(fixture).client()
    raw = client.chat.completions.with_raw_response.create(**CHAT)
    answer = raw.parse()
    record = record_of(answer)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (text, "stop")
    assert ("Paris" in raw.text) == (decision == "flag")
    assert record["decision"] == raw.headers["x-snne-guard-decision"] == decision
    assert record["uncertainty"] > 0.4
    assert raw.headers["x-snne-guard-id"] == record["id"]
    assert float(raw.headers["x-snne-guard-uncertainty"]) == record["uncertainty"]


def test_usage_is_that_of_all_draws(flagging: Running) -> None:
    answer = flagging.client().chat.completions.create(**CHAT)
    cost = record_of(answer)["cost"]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == cost["prompt_tokens"] == 10
    assert answer.usage.completion_tokens == cost["completion_tokens"] == 5
    assert answer.usage.total_tokens == 15
    response = flagging.client().responses.create(**RESPONSES)
    assert response.usage is not None
    assert response.usage.input_tokens == 25
    assert response.usage.total_tokens == 30


@pytest.mark.parametrize("upstream_of_its_own", [False, True])
def test_another_model_of_a_policy_is_asked_with_its_own_key(
    upstream: Server, monkeypatch: pytest.MonkeyPatch, *, upstream_of_its_own: bool
) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    with Server(always("Lyon", model="small")) as there:
        own = {"upstream": there.url, "model": "small", "key": "OTHER_KEY"}
        other = own if upstream_of_its_own else "small"
        prices = {"small": {"prompt": 1, "completion": 1}}
        policy = {"n": 3, "other_models": [other], "prices": prices}
        with serving(upstream.url, policy=policy) as running:
            answer = running.client("sk-mine").chat.completions.create(**CHAT)
        asked = [*upstream.requests, *there.requests]
    (request,) = [each for each in asked if each.body["model"] == "small"]
    assert (request in there.requests) is upstream_of_its_own
    key = "sk-other" if upstream_of_its_own else "sk-mine"
    assert request.headers["authorization"] == f"Bearer {key}"
    mine = {each.headers["authorization"] for each in asked if each is not request}
    assert mine == {"Bearer sk-mine"}
    record, usage = record_of(answer), answer.usage
    assert record["other_models"]["small"]["money"] == pytest.approx(6e-6)
    assert record["cost"]["completion_tokens"] == 3
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (10, 2)  # without its own


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_ORG_ID", "org-mine"),
        ("OPENAI_PROJECT_ID", "proj-mine"),
        ("OPENAI_API_KEY", "sk-mine"),
        ("OPENAI_CUSTOM_HEADERS", "X-Gateway: mine"),
        ("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer mine"),
    ],
)
def test_nothing_of_the_process_reaches_another_upstream(
    upstream: Server, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    monkeypatch.setenv(name, value)
    with Server(always("Lyon", model="small")) as there:
        other = {"upstream": there.url, "model": "small", "key": "OTHER_KEY"}
        with serving(upstream.url, policy={"n": 3, "other_models": [other]}) as running:
            running.post(json=CHAT, headers={"Authorization": "Bearer sk-client"})
    (request,) = there.requests
    assert request.headers["authorization"] == "Bearer sk-other"
    assert "mine" not in str(request.headers)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"model": "a"}, "upstream"),
        ({"upstream": "ftp://a/v1", "model": "a"}, "upstream"),
        ({"upstream": "http://a/v1", "model": "a", "keys": "A"}, "keys"),
        ({"upstream": "http://a/v1", "model": "a", "key": "NONE"}, "variable NONE"),
        (["a"], "name of another model to be str, got list"),
    ],
)
def test_another_model_that_makes_no_sense_is_refused(other: Any, message: str) -> None:
    config = load_config(upstream="http://a/v1", policy={"other_models": [other]})
    with pytest.raises(ConfigurationError, match=f"policy default: .*{message}"):
        create_app(config)


def test_usage_with_a_fallback_counts_its_answer_too(upstream: Server) -> None:
    policy = {"threshold": 0.4, "on_uncertain": "fallback", "fallback": "larger"}
    with serving(upstream.url, policy=policy) as running:
        answer = running.client().chat.completions.create(**CHAT)
    assert upstream.requests[-1].body["model"] == "larger"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (15, 21)


def test_fields_that_the_package_does_not_know_survive(
    flagging: Running, upstream: Server
) -> None:
    upstream.script = always(message={"reasoning_content": "hm"}, usage=False)
    answer = flagging.post(json=CHAT).json()
    assert answer["choices"][0]["message"]["reasoning_content"] == "hm"
    assert "usage" not in answer


@pytest.mark.parametrize(
    ("fixture", "decision", "text"),
    [("flagging", "flag", "Paris"), ("refusing", "refuse", REFUSAL)],
)
def test_a_stream_ends_with_the_assessment(
    fixture: str, decision: str, text: str, request: pytest.FixtureRequest
) -> None:
    running = request.getfixturevalue(fixture)
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    answer = running.post(json=body)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.text.endswith("data: [DONE]\n\n")
    *parts, last = events(answer.text)
    assert last["usage"]["total_tokens"] == 15
    assert last["snne_guard"]["decision"] == decision
    assert all("snne_guard" not in part for part in parts)
    texts = [part["choices"][0]["delta"].get("content") or "" for part in parts]
    assert "".join(texts) == text


@pytest.mark.parametrize(
    ("fixture", "text"), [("flagging", "Paris"), ("refusing", REFUSAL)]
)
def test_a_streamed_response_ends_with_the_assessment(
    fixture: str, text: str, request: pytest.FixtureRequest
) -> None:
    running = request.getfixturevalue(fixture)
    with running.client().responses.stream(**RESPONSES) as stream:
        kinds = [event.type for event in stream]
        response = stream.get_final_response()
    assert kinds[-1] == "response.completed"
    assert response.output_text == text
    assert record_of(response)["uncertainty"] > 0.4


def test_halves_of_a_character_pass_through_a_stream() -> None:
    with Server(always("\ud83d \ude00")) as upstream, serving(upstream.url) as running:
        body = {**CHAT, "stream": True}
        got = running.post(json=body)
    deltas = [e["choices"][0]["delta"].get("content", "") for e in events(got.text)]
    assert "".join(deltas) == "\ud83d \ude00"


def test_an_answer_that_is_raised_is_an_error_of_the_api(upstream: Server) -> None:
    policy = {"threshold": 0.4, "on_uncertain": "raise"}
    with serving(upstream.url, policy=policy) as running:
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            running.client().chat.completions.create(**CHAT)
    assert caught.value.code == "uncertain_answer"
    told = caught.value.response.json()
    assert told["snne_guard"]["uncertainty"] > 0.4
    assert "Paris" not in caught.value.response.text


def test_a_held_stream_is_kept_alive_until_it_ends_or_fails(
    refusing: Running, upstream: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snne_guard.server.replies.PATIENCE", 0.1)
    body = {**CHAT, "stream": True}
    upstream.script = always(delay=0.5)
    got = refusing.post(json=body)
    assert got.text.startswith(": the answer is not decided on yet\n\n")
    assert got.text.endswith("data: [DONE]\n\n")
    upstream.script = always(delay=0.5, status=400)
    with pytest.raises(openai.APIError, match="no"):
        list(refusing.client().chat.completions.create(**CHAT, stream=True))


def test_a_background_response_passes_unscored_where_nothing_is_withheld(
    flagging: Running, refusing: Running, upstream: Server
) -> None:
    upstream.script = always(body={"id": "r", "status": "queued", "output": []})
    body = {**RESPONSES, "background": True}
    assert refusing.post("/v1/responses", json=body).status_code == 400
    assert not upstream.requests
    got = flagging.post("/v1/responses", json=body)
    assert got.json()["status"] == "queued"
    assert got.headers["x-snne-guard"] == "passthrough"
    assert [asked.body for asked in upstream.requests] == [body]


def test_answers_that_exist_are_scored(refusing: Running) -> None:
    alike = refusing.post("/snne/score", json={"answers": ["Paris"] * 3}).json()
    given = {"answers": ["Paris", *APART], "question": "?"}
    apart = refusing.post("/snne/score", json=given).json()
    assert alike["uncertainty"] == 0
    assert apart["uncertainty"] > 0.9
    empty = refusing.post("/snne/score", json={"answers": ["", "Paris"]}).json()
    assert (empty["value"], empty["uncertainty"]) == (None, None)
    wrongs: list[dict[str, Any]] = [{}, {"answers": []}, {"answers": ["a"], "n": 1}]
    wrongs.append({"answers": ["a" * 20_000] * 4})  # too long together
    for wrong in wrongs:
        assert refusing.post("/snne/score", json=wrong).status_code == 400


def test_a_given_answer_is_assessed(refusing: Running, upstream: Server) -> None:
    given = refusing.post("/snne/assess", json={**CHAT, "answer": "Madrid"}).json()
    assert given["decision"] == "refuse"
    assert not upstream.answers
    assert refusing.post("/snne/assess", json=RESPONSES).json()["decision"] == "refuse"
    assert upstream.answers
    assert refusing.post("/snne/assess", json={"model": "m"}).status_code == 400


def test_long_answers_are_compressed(upstream: Server) -> None:
    upstream.script = always("word " * 1000)
    with serving(upstream.url) as running:
        got = running.post(json=CHAT)
    assert got.headers["content-encoding"] == "gzip"
    assert got.json()["choices"][0]["message"]["content"] == "word " * 1000


def test_a_structured_answer_has_its_fields_in_the_body_and_the_worst_in_a_header() -> (
    None
):
    texts = [json.dumps({"name": "Paris", "people": n}) for n in (2, 3, 4, 5, 6)]
    form = {"response_format": {"type": "json_object"}}
    with (
        Server(split(*texts)) as server,
        serving(server.url, policy={"field_threshold": 0.5}) as running,
    ):
        got = running.post(json={**CHAT, **form})
        plain = running.post(json={**CHAT, "stream": True, **form})
    record = got.json()["snne_guard"]
    assert [each["path"] for each in record["fields"]] == ["/name", "/people"]
    assert record["uncertain_fields"] == ["/people"]
    worst = max(each["uncertainty"] for each in record["fields"])
    assert float(got.headers["x-snne-guard-worst-field"]) == worst
    last = [each for each in events(plain.text) if "snne_guard" in each][-1]
    assert last["snne_guard"]["uncertain_fields"] == ["/people"]
