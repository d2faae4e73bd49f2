"""Options that make no sense, and the guard as a value that stands for its model."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI
from openai import OpenAI
from pydantic import ValidationError

from snne_guard import ConfigurationError, Prices, SNNEGuard, guard_client
from tests.langchain.support import (
    CALLS,
    MODEL,
    REFUSING,
    WHOLE,
    ask,
    chat_openai,
    guarded,
)
from tests.support.observers import Watcher
from tests.support.openai_server import APART, Server, split

# -- Bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "n to be a whole number of at least 2, got 1"),
        ({"threshold": 1.5}, r"threshold .* to be a finite number .* got 1.5"),
        ({"threshold": (0.9, 0.1)}, r"got \(0.9, 0.1\)"),
        ({"on_uncertain": "refuse"}, "on_uncertain='refuse' needs a threshold"),
        ({"on_uncertain": "shrug", "threshold": 0.4}, "one of 'flag'.*got 'shrug'"),
        ({"on_uncertain": "fallback", "threshold": 0.4}, "needs a fallback; got none"),
        ({"fallback": "x"}, "expected fallback to be a runnable, got str"),
        ({"method": "magic"}, "expected method .*'snne'.*'magic'"),
        ({"method": "eigen_score"}, "'eigen_score', which needs hidden_states"),
        (
            {"method": "ne", "threshold": 0.4},
            "needs a method whose values are bounded, got 'ne'",
        ),
        ({"similarity": "magic"}, "expected similarity .*, got 'magic'"),
        ({"similarity": ""}, "expected similarity .*, got ''"),
        ({"on_uncertain": None, "threshold": 0.4}, "unless it is 'flag' or .*got None"),
        (
            {"on_uncertain": lambda: "flag", "threshold": 0.4},
            "expected on_uncertain.* to take one argument: too many",
        ),
        ({"question": lambda: "x"}, "expected question to take one argument"),
        ({"threshold": [0.9, 0.1]}, r"got \(0.9, 0.1\)"),
        ({"method": "dse", "similarity": "rouge_l"}, "needs a similarity with"),
        ({"question": "Who?"}, "question to be a plain function, got 'Who"),
        ({"min_replies": 6}, "at least 2 and at most 5, got 6"),
        ({"sample_timeout": "1"}, "sample_timeout to be a finite .*, got '1'"),
        (
            {"prices": Prices(prompt="0.4", completion=1)},  # type: ignore[arg-type]
            "the price prompt to be a finite number of at least 0, got '0.4'",
        ),
        ({"observers": Watcher()}, "observers to be list or tuple, got Watcher"),
        ({"observers": [print]}, "on_assessment.*; builtin_function_or_method has"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SNNEGuard(MODEL, **options)


def test_a_misspelt_option_is_refused() -> None:
    misspelt: Any = {"treshold": 0.4}
    expected = "unknown option 'treshold', did you mean 'threshold'?"
    for make in (partial(SNNEGuard, MODEL), partial(guard_client, OpenAI(api_key="-"))):
        with pytest.raises(ConfigurationError) as raised:
            make(**misspelt)
        assert str(raised.value) == expected


NO_MODEL: Any = RunnableLambda(str)


OTHER = ConfigurableField(id="other")
NO_MODELS: list[tuple[Any, str]] = [
    (None, "a guard needs a chat model: .*got NoneType"),
    ("gpt-5", "got str"),
    (MODEL.with_fallbacks([NO_MODEL]), "got RunnableLambda"),
    (MODEL | StrOutputParser(), "got RunnableSequence.* prompt | guard | parser"),
    (MODEL.configurable_fields(responses=OTHER).with_retry(), "on the guard"),
    (MODEL.configurable_alternatives(OTHER, other=MODEL), "on the guard"),
    (init_chat_model(), "on the guard"),
]


@pytest.mark.parametrize(("model", "message"), NO_MODELS)
def test_what_is_no_chat_model_is_refused(model: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SNNEGuard(model)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_uncertain": lambda _: "shrug"}, "must return one of .* another str$"),
        ({"on_uncertain": lambda _: "fallback"}, "but the guard has none"),
        (
            {"on_uncertain": "fallback", "fallback": RunnableLambda(lambda _: [1])},
            "a message or a text from the fallback, .* got list",
        ),
        ({"question": lambda _: 3}, "the question as a text, got int"),
    ],
)
def test_what_a_function_of_the_users_returns_is_checked(
    way: str, options: Any, message: str
) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, **{"threshold": 0.1, **options})
        with pytest.raises(ConfigurationError, match=message):
            ask(guard, way)


# -- A guard is a value ----------------------------------------------------------------


def test_a_guard_cannot_be_changed() -> None:
    guard = SNNEGuard(MODEL, threshold=0.4)
    for name in ("n", "threshold", "guarded", "observers"):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(guard, name, 3)
    assert (guard.n, guard.settings.n) == (5, 5)


def test_a_copy_with_other_options_is_checked_and_leaves_the_first_alone() -> None:
    guard = SNNEGuard(MODEL, threshold=0.4)
    other = guard.model_copy(update={"n": 3, "on_uncertain": "refuse"})
    assert (other.n, other.settings.n, other.settings.on_uncertain) == (3, 3, "refuse")
    assert (guard.n, guard.on_uncertain) == (5, "flag")
    with pytest.raises(ConfigurationError, match="got 1"):
        guard.model_copy(update={"n": 1})
    assert guard.copy(update={"n": 3}).settings.n == 3  # pydantic's would keep the old


@pytest.mark.parametrize(
    "remade",
    [copy.copy, copy.deepcopy, lambda guard: pickle.loads(pickle.dumps(guard))],  # noqa: S301 - our own
)
def test_a_copied_or_pickled_guard_works(remade: Callable[[Any], Any]) -> None:
    guard = remade(SNNEGuard(MODEL, n=3, **REFUSING))
    assert guard.invoke("Where?").content == "Paris"
    assert (guard.n, guard.settings.on_uncertain) == (3, "refuse")


def test_the_repr_shows_options_and_no_secret() -> None:
    model = ChatOpenAI(model="m", api_key="sk-hidden")  # type: ignore[arg-type]  # a text will do
    shown = f"{SNNEGuard(model, threshold=0.4)!r}"
    assert "sk-hidden" not in shown
    assert "threshold=0.4" in shown


def test_the_callers_model_is_left_as_it_is() -> None:
    with Server(split("Paris", *APART)) as server:
        model = chat_openai(server, temperature=0.0, seed=7)
        before = model.model_copy()
        for way in CALLS:
            ask(SNNEGuard(model), way)
        assert {a.body.get("seed") for a in server.answers} == {7}
        assert {a.body.get("seed") for a in server.samples} == {None}
    assert model == before


def test_it_stands_for_the_model_that_it_guards() -> None:
    model = ChatOpenAI(model="gpt-4o-mini", api_key="test", temperature=0.2)  # type: ignore[arg-type]  # a text will do
    for wrapped in (model, model.bind(stop=["."]), model.with_retry()):
        guard = SNNEGuard(wrapped)
        assert isinstance(guard, BaseChatModel)
        assert guard.model_name == "gpt-4o-mini"
        assert guard.profile == model.profile
        # LangChain's own hook, whose result tracers get as a run's metadata.
        traced = dict(guard._get_ls_params())
        assert traced["ls_provider"] == "openai"
        assert traced["ls_model_name"] == "gpt-4o-mini"
        assert traced["ls_temperature"] == 0.2


class Counting(FakeListChatModel):
    """Counts words as tokens."""

    def get_num_tokens(self, text: str) -> int:
        return len(text.split())

    def get_num_tokens_from_messages(self, messages: Any, tools: Any = None) -> int:
        return 10 * len(messages) + len(tools or ())


def test_tokens_are_counted_as_the_model_counts_them() -> None:
    guard = SNNEGuard(Counting(responses=["x"]))
    assert guard.get_num_tokens("one two three") == 3
    assert guard.get_num_tokens_from_messages([HumanMessage("one")], tools=[{}]) == 11
