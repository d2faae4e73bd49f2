"""How guards for the ``openai`` package are made, and what their options may be."""

from __future__ import annotations

import inspect
from typing import Any

import openai
import pytest

import snne_guard
from snne_guard import (
    AsyncOpenAIGuard,
    ConfigurationError,
    OpenAIGuard,
    SNNEGuard,
)
from snne_guard.assess.settings import DEFAULTS, PAPER, GuardSettings
from snne_guard.types import Assessment
from tests.support.chat_server import (
    ChatServer,
    cycle,
)


@pytest.fixture
def whom() -> openai.OpenAI:
    return openai.OpenAI(api_key="secret")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"thresold": 0.4}, "OpenAIGuard has no option 'thresold'"),
        ({"on_uncertain": "ask", "threshold": 0.4}, "'flag', 'refuse', 'fallback'"),
        ({"on_uncertain": "raise"}, "needs a threshold"),
        ({"n": 1}, "n must be a whole number of at least 2"),
        ({"max_concurrency": 0}, "max_concurrency must be"),
        ({"options": {"stream": True}}, "'stream' is set for each request"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    whom: openai.OpenAI, settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        OpenAIGuard(whom, **{"model": "m", **settings})


def test_each_guard_takes_the_client_of_its_kind(whom: openai.OpenAI) -> None:
    wrong: Any = whom
    with pytest.raises(ConfigurationError, match=r"client must be AsyncOpenAI\(\)"):
        AsyncOpenAIGuard(wrong, model="m")


def test_the_paper_s_settings_can_be_had(whom: openai.OpenAI) -> None:
    guard = OpenAIGuard.paper(whom, model="m", threshold=0.4)
    shown = repr(guard)
    assert shown.startswith("OpenAIGuard(OpenAI, model='m', n=10, include_answer=False")
    assert "'rouge_l_paper'" in shown
    assert "secret" not in shown
    tasks = openai.AsyncOpenAI(api_key="secret")
    other = AsyncOpenAIGuard.paper(tasks, model="m", n=5)
    assert repr(other).startswith("AsyncOpenAIGuard(AsyncOpenAI, model='m', n=5")
    assert PAPER["n"] == 10


def test_settings_are_those_of_the_guard_for_langchain() -> None:
    assert set(DEFAULTS) == set(GuardSettings.__annotations__)
    parameters = inspect.signature(SNNEGuard.__init__).parameters
    for name, default in DEFAULTS.items():
        assert parameters[name].default == default, name
    of_langchain = {"model", "fallback", "refusal", "trace_samples"}
    assert set(parameters) - set(DEFAULTS) == {"self", "internal", *of_langchain}


def test_failures_of_observers_are_counted() -> None:
    class Broken:
        def on_assessment(self, _assessment: Assessment) -> None:
            raise LookupError

    with ChatServer(cycle(["Paris"])) as server:
        client = openai.OpenAI(api_key="x", base_url=server.url)
        with client:
            guard = OpenAIGuard(client, model="m", observers=[Broken()])
            guard.assess("x")
    assert guard.observer_failures == 1


def test_the_names_are_public() -> None:
    for name in ("OpenAIGuard", "AsyncOpenAIGuard", "OpenAISampler"):
        assert name in snne_guard.__all__
        assert getattr(snne_guard, name).__name__ == name
