"""What stands behind a model, whatever wraps it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableConfig,
    RunnableLambda,
)
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain_models import (
    Candidate,
    answer_settings,
    check_model,
    has_choices,
    pin,
    resolve,
)
from tests.sampling.models import fake, gpt


class Add(BaseModel):
    """Add two numbers."""

    a: int
    b: int


def only(model: Runnable[Any, Any]) -> Candidate:
    (candidate,) = resolve(model)
    return candidate


def choosing() -> Runnable[Any, Any]:
    """Return a model whose kind is chosen by the configuration of the call."""
    which = ConfigurableField(id="which")
    return fake("a").configurable_alternatives(which, default_key="a", b=fake("b"))


# --- pin, resolve -----------------------------------------------------------------


def test_a_bare_model_is_itself() -> None:
    model = fake()
    assert pin(model) is model
    assert only(model) == Candidate(model=model)


def test_what_wrappers_bind_is_gathered_the_outer_one_last() -> None:
    model = gpt()
    inner = model.bind(stop=["a"], seed=1)
    outer = inner.bind(seed=2).with_config(tags=["two"], metadata={"k": "v"})
    found = only(pin(outer))
    assert found.model is model
    assert found.kwargs == {"stop": ["a"], "seed": 2}
    assert found.config["tags"] == ["two"]
    assert found.config["metadata"] == {"k": "v"}
    assert pin(outer) is outer


def test_bound_tools_are_found() -> None:
    found = only(gpt().bind_tools([Add]))
    assert [tool["function"]["name"] for tool in found.kwargs["tools"]] == ["Add"]


def test_the_retries_of_with_retry_are_left_out_and_what_is_in_them_is_not() -> None:
    model = gpt()
    found = only(pin(model.bind(seed=1).with_retry(stop_after_attempt=7)))
    assert (found.model, found.kwargs) == (model, {"seed": 1})


def test_fallbacks_are_candidates_in_their_order() -> None:
    first, second, third = fake("1"), fake("2"), fake("3")
    handled = (ValueError, TimeoutError)
    inner = second.bind(seed=2).with_fallbacks([third], exceptions_to_handle=(OSError,))
    outer = first.with_fallbacks([inner], exceptions_to_handle=handled)
    found = resolve(pin(outer))
    assert [candidate.model for candidate in found] == [first, second, third]
    assert [candidate.handles for candidate in found] == [
        handled,
        (OSError, *handled),
        (OSError, *handled),
    ]
    assert [dict(candidate.kwargs) for candidate in found] == [{}, {"seed": 2}, {}]
    assert pin(outer) is outer


def test_options_bound_around_fallbacks_hold_for_each() -> None:
    first = fake("1").with_config(tags=["one"])
    both = first.with_fallbacks([fake("2")]).bind(stop=["x"])
    found = resolve(both.with_config(tags=["two"]))
    assert [candidate.kwargs for candidate in found] == [{"stop": ["x"]}] * 2
    assert [c.config["tags"] for c in found] == [["one", "two"], ["two"]]


def test_configurable_fields_are_those_of_the_call() -> None:
    field = ConfigurableField(id="temp")
    model = gpt(temperature=0.1).configurable_fields(temperature=field)
    plain, changed = only(pin(model)), only(pin(model, {"configurable": {"temp": 0.9}}))
    assert isinstance(plain.model, ChatOpenAI)
    assert isinstance(changed.model, ChatOpenAI)
    assert (plain.model.temperature, changed.model.temperature) == (0.1, 0.9)


def chosen(model: Runnable[Any, Any], which: str | None = None) -> list[str]:
    config: RunnableConfig = {"configurable": {"which": which}} if which else {}
    return [
        candidate.model.responses[0]
        for candidate in resolve(pin(model, config))
        if isinstance(candidate.model, FakeListChatModel)
    ]


def test_configurable_alternatives_are_those_of_the_call() -> None:
    assert chosen(choosing()) == ["a"]
    assert chosen(choosing(), "b") == ["b"]


def test_choices_are_made_inside_wrappers_too() -> None:
    around = choosing().bind(stop=["x"]).with_retry()
    assert chosen(around, "b") == ["b"]
    beside = fake("1").with_fallbacks([choosing()])
    assert chosen(beside) == ["1", "a"]
    assert chosen(beside, "b") == ["1", "b"]
    assert pin(beside) is not beside
    assert resolve(pin(beside, {}))[0].handles == (Exception,)


def test_what_with_config_chooses_is_chosen() -> None:
    fixed = choosing().with_config(configurable={"which": "b"})
    assert chosen(fixed) == ["b"]
    bound = choosing().bind(stop=["x"]).with_config(configurable={"which": "b"})
    assert chosen(bound) == ["b"]
    assert only(pin(bound)).kwargs == {"stop": ["x"]}


def test_tools_bound_to_a_choice_stay_bound() -> None:
    model: Any = gpt(temperature=0).configurable_fields(
        temperature=ConfigurableField(id="temp")
    )
    assert isinstance(model, DynamicRunnable)
    found = only(pin(model.bind_tools([Add]), {"configurable": {"temp": 1}}))
    assert len(found.kwargs["tools"]) == 1


def test_what_init_chat_model_makes_is_made_for_the_call() -> None:
    model: Any = init_chat_model(
        "one",
        model_provider="openai",
        configurable_fields=("model", "temperature"),
        api_key="test",
    )
    assert has_choices(model)
    check_model(model)
    plain = only(pin(model)).model
    config: RunnableConfig = {"configurable": {"model": "two", "temperature": 0.3}}
    changed = only(pin(model.bind_tools([Add]), config))
    assert isinstance(plain, ChatOpenAI)
    assert isinstance(changed.model, ChatOpenAI)
    assert plain.model_name == "one"
    assert (changed.model.model_name, changed.model.temperature) == ("two", 0.3)
    assert len(changed.kwargs["tools"]) == 1
    assert only(pin(init_chat_model("openai:one", api_key="test"))).kwargs == {}


# --- what is no chat model ---------------------------------------------------------

NO_MODEL: Any = RunnableLambda(str)
NO_MODELS: list[Any] = [
    None,
    "gpt-4o",
    ChatOpenAI,
    FakeListLLM(responses=["x"]),
    RunnableLambda(str),
    fake() | StrOutputParser(),
    RunnableLambda(str).bind(stop=["x"]),
    fake().with_fallbacks([NO_MODEL]),
    RunnableLambda(str).with_retry(),
]


@pytest.mark.parametrize("model", NO_MODELS)
def test_what_is_no_chat_model_is_refused(model: Any) -> None:
    with pytest.raises(ConfigurationError, match="a guard needs a chat model"):
        check_model(model)
    with pytest.raises(ConfigurationError, match="a guard needs a chat model"):
        pin(model)


def test_the_refusal_names_the_type_and_the_way_out_for_a_chain() -> None:
    with pytest.raises(ConfigurationError, match=r"got str$"):
        check_model("gpt-4o")
    with pytest.raises(ConfigurationError, match=r"got RunnableSequence\. To guard"):
        check_model(fake() | StrOutputParser())


def test_a_choice_that_is_no_chat_model_is_found_by_the_call() -> None:
    which = ConfigurableField(id="which")
    chain: Any = RunnableLambda(str)
    model = fake().configurable_alternatives(which, chain=chain)
    check_model(model)
    with pytest.raises(ConfigurationError, match="got RunnableLambda"):
        pin(model, {"configurable": {"which": "chain"}})


@pytest.mark.parametrize(
    ("model", "choices"),
    [
        (fake(), False),
        (fake().bind(stop=["x"]).with_retry(), False),
        (fake().with_fallbacks([fake()]), False),
        (choosing(), True),
        (choosing().bind(stop=["x"]), True),
        (fake().with_fallbacks([choosing()]), True),
    ],
)
def test_whether_the_call_has_a_choice_is_known(model: Any, *, choices: bool) -> None:
    check_model(model)
    assert has_choices(model) is choices


# --- what the answer is drawn with ----------------------------------------------------


NAMED = pytest.mark.parametrize(
    ("name", "option"),
    [("answer_temperature", "temperature"), ("top_p", "top_p")],
)


@NAMED
def test_a_setting_of_the_answer_is_the_call_s_the_binding_s_or_the_model_s(
    name: str, option: str
) -> None:
    def said(model: Any, **kwargs: Any) -> Any:
        return only(model).answer_settings(kwargs)[name]

    model: Any = gpt(**{option: 0.2})
    bound = model.bind(**{option: 0.5})
    assert said(model) == {0.2}
    assert said(bound) == {0.5}
    assert said(bound, **{option: 1}) == {1.0}
    assert said(gpt()) == {None}
    assert said(gpt(), **{option: "warm"}) == set()
    assert said(fake()) == set()
    assert answer_settings(model.with_fallbacks([gpt(), fake()]))[name] == {0.2, None}


@NAMED
def test_what_goes_into_the_body_as_it_is_comes_before_the_rest(
    name: str, option: str
) -> None:
    model: Any = gpt(**{option: 0.2}, extra_body={option: 0.4, "top_k": 3})
    assert only(model).answer_settings({})[name] == {0.4}
    own = {"extra_body": {option: 0.6}}
    assert only(model).answer_settings(own)[name] == {0.6}
    assert only(model).answer_settings({"extra_body": {"n": 2}})[name] == {0.2}


@NAMED
def test_options_that_replace_all_fields_replace_a_setting_too(
    name: str, option: str
) -> None:
    found = pytest.importorskip("langchain_ollama")
    chat = found.ChatOllama(model="m", **{option: 0})
    assert only(chat).answer_settings({})[name] == {0.0}
    told = {"options": {option: 0.7}}
    assert only(chat).answer_settings(told)[name] == {0.7}
    bound = only(chat.bind(options={"top_k": 3}))
    assert bound.answer_settings({})[name] == {None}


def test_the_other_spelling_of_an_option_is_read_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    aws = pytest.importorskip("langchain_aws")
    model: Any = aws.ChatBedrockConverse(model="anthropic.m", provider="anthropic")
    tuned: Any = model.model_copy(
        update={"additional_model_request_fields": {"topP": 0.3}, "top_p": 0.9}
    )

    def said(model: Any, **kwargs: Any) -> Any:
        return only(model).answer_settings(kwargs)["top_p"]

    assert (said(model), said(model, topP=0.5)) == ({None}, {0.5})
    for place in ("inferenceConfig", "inference_config"):
        full = model.bind(**{place: {"temperature": 0, "topP": 0.5}})
        assert only(full).answer_settings({}) == {
            "answer_temperature": {0.0},
            "top_p": {0.5},
            "max_tokens": {None},
            "stop": {None},
        }
        later = {"inferenceConfig": {"top_p": 0.4}, "inference_config": {"a": 1}}
        assert said(full, **later) == ({0.4} if place == "inference_config" else {None})
    # The option replaces the field, and nothing that goes beside it.
    assert said(model.model_copy(update={"top_p": 0.9}), inferenceConfig={"a": 1}) == {
        None
    }
    assert said(tuned, inferenceConfig={"temperature": 0}) == {0.3}
    assert said(tuned, topP=0.5, top_p=0.5) == {0.3}
    assert said(model, topP=0.5, top_p=0.6) == {0.5, 0.6}


@pytest.mark.parametrize("spelled", ["top_p", "topP"])
def test_gemini_takes_both_spellings(spelled: str) -> None:
    google = pytest.importorskip("langchain_google_genai")
    model: Any = google.ChatGoogleGenerativeAI(model="m", google_api_key="test")
    assert only(model).answer_settings({})["top_p"] == {None}
    bound = only(model.bind(generation_config={spelled: 0.5}))
    assert bound.answer_settings({})["top_p"] == {0.5}
