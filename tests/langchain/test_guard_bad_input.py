"""What makes no sense is refused, with what was expected and what came."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from snne_guard import (
    ConfigurationError,
    InputError,
    SNNEGuard,
)
from tests.support.chat_server import (
    ChatServer,
    chat_openai,
)
from tests.support.guarding import WHOLE, Witness, ask, split

MODEL = FakeListChatModel(responses=["x"])


@pytest.mark.parametrize("way", WHOLE)
def test_what_a_user_returns_from_on_uncertain_must_be_known(way: str) -> None:
    with ChatServer(split("Paris", ["a", "b"])) as server:
        witness = Witness()
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.1,
            on_uncertain=lambda _assessment: "shrug",
            observers=[witness],
        )
        with pytest.raises(ConfigurationError, match=r"a message; got another str$"):
            ask(guard, "x", way)
        guard = SNNEGuard(
            chat_openai(server), threshold=0.1, on_uncertain=lambda _a: "fallback"
        )
        with pytest.raises(ConfigurationError, match="no fallback"):
            ask(guard, "x", way)
    assert "on_uncertain_failed" in witness.last.reasons


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("given", [None, {"messages": ["B"]}, ["B"]])
def test_what_a_fallback_gives_must_be_something_to_deliver(
    way: str, given: Any
) -> None:
    with ChatServer(split("Paris", ["a", "b"])) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.1,
            on_uncertain="fallback",
            fallback=lambda _messages: given,
        )
        told = f"a message or a text; got {type(given).__name__}$"
        with pytest.raises(ConfigurationError, match=told):
            ask(guard, "x", way)


@pytest.mark.parametrize(
    ("observers", "told"),
    [
        (Witness(), "observers must be a list of observers; got Witness"),
        ("me", "on_assessment; str has none"),
        ([print], "on_assessment; builtin_function_or_method has none"),
    ],
)
def test_observers_are_a_list_of_what_can_be_told(observers: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        SNNEGuard(MODEL, observers=observers)


def test_structured_output_is_guarded_by_the_guard_s_own_method() -> None:
    chain = MODEL | RunnableLambda(str)
    with pytest.raises(ConfigurationError, match=r"guard\.with_structured_output"):
        SNNEGuard(chain)


def test_an_async_on_uncertain_is_refused_in_a_sync_call() -> None:
    async def decide(_assessment: Any) -> str:
        return "flag"

    with ChatServer(split("Paris", ["a", "b"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.1, on_uncertain=decide)
        with pytest.raises(ConfigurationError, match="ainvoke"):
            guard.invoke("x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 2; got 0"),
        ({"n": 1}, "at least 2; got 1"),
        ({"n": 2.5}, "got 2.5"),
        ({"tau": 0.0}, "tau must be"),
        ({"tau": -1.0}, "tau must be"),
        ({"temperature": -1}, "temperature must be 0 or more"),
        ({"threshold": 1.5}, r"\[0, 1\]"),
        ({"threshold": "low"}, "threshold must be"),
        ({"threshold": (0.9, 0.1)}, "accept <= refuse"),
        ({"threshold": (0.9,)}, "got 1 values"),
        ({"on_uncertain": "refuse"}, "needs a threshold"),
        ({"on_uncertain": "raise"}, "needs a threshold"),
        ({"on_uncertain": "shrug", "threshold": 0.5}, "'shrug'"),
        ({"on_uncertain": "fallback", "threshold": 0.5}, "needs a fallback"),
        ({"on_error": "pass"}, "on_error must be one of"),
        ({"tool_calls": "maybe"}, "tool_calls must be"),
        ({"method": "magic"}, "expected method"),
        ({"similarity": "magic"}, "magic"),
        ({"min_samples": 6}, "from 2 to n = 5"),
        ({"schedule": "later"}, "schedule must be"),
        ({"timeout": 0}, "timeout must be seconds above 0"),
        ({"sample_timeout": -1}, "sample_timeout"),
        ({"sample_max_tokens": 0}, "sample_max_tokens"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"sample_rate": 2}, "sample_rate"),
        ({"treshold": 0.5}, "no option 'treshold'"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_construction(
    options: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SNNEGuard(MODEL, **options)


@pytest.mark.parametrize(
    "model",
    [None, "gpt-4o", object(), RunnableLambda(str), MODEL | RunnableLambda(str)],
)
def test_what_is_no_chat_model_is_refused_at_construction(model: Any) -> None:
    with pytest.raises(ConfigurationError, match="a guard needs a chat model"):
        SNNEGuard(model)


def test_what_is_no_input_of_a_chat_model_is_refused() -> None:
    with pytest.raises(InputError, match="got int"):
        SNNEGuard(MODEL).invoke(3)  # type: ignore[arg-type]  # on purpose
