"""How one question of a recording is drawn: the guard, and settings by provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import ConfigurationError, SNNEGuard
from snne_guard.cli._drawing import DrawSettings, guard_draw
from snne_guard.decision.bound_settings import ANSWER_SETTINGS
from snne_guard.sampling.langchain_models import resolve
from tests.support.calibrated import calibration
from tests.support.chat_server import ChatServer, chat_openai

SETTINGS = DrawSettings(
    model="m",
    temperature=1.0,
    answer_temperature=0.2,
    samples=3,
    max_tokens=9,
    system=None,
    seed=None,
)


def test_the_guard_draws_every_sample_whatever_it_costs() -> None:
    with ChatServer() as server:
        guard = guard_draw(
            chat_openai(server),
            SETTINGS,
            max_concurrency=1,
            max_attempts=1,
            timeout=None,
            prices=None,
        ).guard
    assert (guard.n, guard.include_answer, guard.sample_rate) == (4, True, 1.0)
    brakes = (guard.breaker, guard.budget, guard.sample_when, guard.rounds)
    assert brakes == (None, None, None, None)


@pytest.mark.parametrize(
    ("package", "name", "options", "expected", "stops"),
    [
        (
            "langchain_ollama",
            "ChatOllama",
            {"model": "m"},
            {"temperature": 0.2, "num_predict": 9},
            ["\n", "."],
        ),
        (
            "langchain_anthropic",
            "ChatAnthropic",
            {"model_name": "m", "api_key": "test"},
            {"temperature": 0.2, "max_tokens": 9},
            ["."],
        ),
    ],
)
def test_settings_go_where_the_provider_has_them(
    package: str,
    name: str,
    options: dict[str, Any],
    expected: dict[str, Any],
    stops: list[str],
) -> None:
    chat = getattr(pytest.importorskip(package), name)(**options)
    before = chat.model_copy()
    [found] = resolve(SETTINGS.on(chat))
    assert {field: getattr(found.model, field) for field in expected} == expected
    assert found.kwargs == {}
    assert chat == before

    stopping = replace(SETTINGS, stop=("\n", "\n\n", "."))
    [found] = resolve(stopping.on(chat))
    assert found.kwargs == {"stop": stops}
    [found] = resolve(replace(stopping, send_stop=False).on(chat))
    assert found.kwargs == {}


def test_a_model_without_such_fields_gets_them_with_each_call() -> None:
    [found] = resolve(SETTINGS.on(FakeListChatModel(responses=["x"])))
    assert found.kwargs == {"temperature": 0.2, "max_tokens": 9}


def test_what_the_class_draws_with_by_itself_is_known() -> None:
    unset = replace(SETTINGS, answer_temperature=None)
    chat = pytest.importorskip("langchain_mistralai").ChatMistralAI(api_key="test")
    assert unset.known(chat) == replace(unset, answer_temperature=0.7, top_p=1.0)
    assert SETTINGS.known(chat) == replace(SETTINGS, top_p=1.0)
    with ChatServer() as server:
        assert unset.known(chat_openai(server)) == unset


def test_what_nobody_can_see_of_a_model_no_line_says() -> None:
    unset = replace(SETTINGS, answer_temperature=None, max_tokens=None)
    blind = FakeListChatModel(responses=["x"])
    with ChatServer() as server:
        told = unset.known(chat_openai(server)).to_dict()
    assert {name: told[name] for name in ANSWER_SETTINGS} == dict.fromkeys(
        ANSWER_SETTINGS  # left to the model
    )
    assert list(told) == list(unset.to_dict())
    assert told.keys() - unset.known(blind).to_dict().keys() == ANSWER_SETTINGS
    said = replace(SETTINGS, stop=(".",)).known(blind).to_dict()
    assert told.keys() - said.keys() == {"top_p"}
    assert said["answer_temperature"] == 0.2
    assert (said["max_tokens"], said["stop"]) == (9, ["."])


@pytest.mark.parametrize(
    ("package", "name", "options", "limit", "stop"),
    [
        ("langchain_anthropic", "ChatAnthropic", {"api_key": "test"}, 4096, None),
        ("langchain_ollama", "ChatOllama", {"num_predict": 7}, 7, None),
        ("langchain_openai", "ChatOpenAI", {"stop": "."}, None, (".",)),
    ],
)
def test_a_limit_and_the_stops_of_the_model_itself_are_known(
    package: str, name: str, options: dict[str, Any], limit: int, stop: Any
) -> None:
    unset = replace(SETTINGS, max_tokens=None)
    kind = getattr(pytest.importorskip(package), name)
    chat = kind(model="m", **{"api_key": "test", **options})
    found = unset.known(chat)
    assert (found.max_tokens, found.stop) == (limit, stop)
    assert isinstance(found.to_dict()["max_tokens"], int | None)
    own = replace(SETTINGS, stop=("x",)).known(chat)
    assert (own.max_tokens, own.stop) == (9, ("x",))


@pytest.mark.parametrize(
    ("package", "name", "options"),
    [
        ("langchain_openai", "ChatOpenAI", {"api_key": "test"}),
        ("langchain_openai", "ChatOpenAI", {"api_key": "test", "top_p": 0.9}),
        ("langchain_anthropic", "ChatAnthropic", {"api_key": "test"}),
        ("langchain_mistralai", "ChatMistralAI", {"api_key": "test"}),
        ("langchain_ollama", "ChatOllama", {}),
    ],
)
@pytest.mark.parametrize("answer_temperature", [None, 0.0])
def test_a_guard_on_the_class_that_was_recorded_starts(
    package: str, name: str, options: dict[str, Any], answer_temperature: float | None
) -> None:
    unset = replace(SETTINGS, answer_temperature=answer_temperature)
    made = getattr(pytest.importorskip(package), name)
    drawn = unset.known(made(model="m", **options))
    told = {name: drawn.to_dict()[name] for name in ANSWER_SETTINGS}
    guard = SNNEGuard.from_calibration(
        drawn.on(made(model="m", **options)), calibration(model="m", **told)
    )
    assert guard.calibration is not None
    with pytest.raises(ConfigurationError, match=r"here it is 0\.5"):
        guard.on(made(model="m", **{**options, "top_p": 0.5}))
