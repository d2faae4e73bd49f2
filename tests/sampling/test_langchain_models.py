"""What stands behind a model, whatever wraps it; the user's own is untouched."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel, FakeListLLM
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableConfig,
    RunnableLambda,
)
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain_copies import sampling_copy
from snne_guard.sampling.langchain_effects import side_effects
from snne_guard.sampling.langchain_models import (
    Candidate,
    check_model,
    has_choices,
    pin,
    quiet_copy,
    resolve,
)
from tests.support.chat_server import ChatServer, always, chat_openai, error
from tests.support.handlers import EverythingHandler


def fake(text: str = "x") -> FakeListChatModel:
    return FakeListChatModel(responses=[text])


def gpt(**options: Any) -> ChatOpenAI:
    settings = {"model": "m", "api_key": SecretStr("test"), **options}
    return ChatOpenAI(**settings)


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


# --- quiet_copy --------------------------------------------------------------------


def test_a_quiet_copy_tells_no_handler_that_the_user_hung_on_the_model() -> None:
    on_model, on_binding, on_fallback = (EverythingHandler() for _ in range(3))
    heard: list[str] = []
    model = FakeListChatModel(responses=["secret"], callbacks=[on_model])
    second = FakeListChatModel(responses=["secret"], callbacks=[on_fallback])
    whole = (
        model.bind(stop=["x"])
        .with_config(callbacks=[on_binding], tags=["kept"])
        .with_listeners(on_start=lambda run: heard.append(run.name))
        .with_fallbacks([second])
        .with_retry()
    )
    quiet = quiet_copy(pin(whole))
    assert quiet.invoke("x").content == "secret"
    assert (on_model.names, on_binding.names, on_fallback.names, heard) == (
        [],
        [],
        [],
        [],
    )
    first, other = resolve(quiet)
    assert first.kwargs == {"stop": ["x"]}
    assert first.config["tags"] == ["kept"]
    assert (first.model.callbacks, other.model.callbacks) == (None, None)
    assert model.callbacks == [on_model]
    assert whole.invoke("x").content == "secret"
    assert on_model.names
    assert on_binding.names
    assert heard


# --- sampling_copy -----------------------------------------------------------------


def test_a_sampling_copy_draws_alone_and_leaves_the_users_model_as_it_was() -> None:
    cache, handler = InMemoryCache(), BaseCallbackHandler()
    model = gpt(
        temperature=0.2, seed=7, n=3, cache=cache, store=True,
        callbacks=[handler], verbose=True, max_retries=5, max_tokens=400,
    )  # fmt: skip
    before, clients = model.model_dump(), (model.root_client, model.client)
    copy = sampling_copy(model, temperature=1.0, max_tokens=50)
    assert isinstance(copy, ChatOpenAI)
    assert (copy.temperature, copy.seed, copy.n) == (1.0, None, None)
    assert (copy.cache, copy.store, copy.callbacks) == (False, False, None)
    assert (copy.verbose, copy.disable_streaming, copy.max_tokens) == (False, True, 50)
    assert copy.root_client.max_retries == copy.root_async_client.max_retries == 0
    assert copy.client._client is copy.root_client
    assert copy.async_client._client is copy.root_async_client
    assert copy.root_client._client is model.root_client._client
    assert model.model_dump() == before
    assert (model.root_client, model.client) == clients
    assert model.root_client.max_retries == 5
    assert (model.cache, model.callbacks, model.seed) == (cache, [handler], 7)


def test_a_sampling_copy_does_not_stream() -> None:
    copy = sampling_copy(gpt(streaming=True), temperature=1.0, max_tokens=None)
    assert isinstance(copy, ChatOpenAI)
    assert copy.streaming is False


def test_a_token_limit_of_none_keeps_the_models_own() -> None:
    copy = sampling_copy(gpt(max_tokens=400), temperature=0.5, max_tokens=None)
    assert isinstance(copy, ChatOpenAI)
    assert (copy.max_tokens, copy.temperature) == (400, 0.5)


def test_a_model_without_settings_is_copied_all_the_same() -> None:
    model = fake()
    copy = sampling_copy(model, temperature=1.0, max_tokens=9)
    assert copy is not model
    assert (copy.cache, copy.disable_streaming) == (False, True)
    assert not hasattr(copy, "temperature")


class Half(FakeListChatModel):
    """A model with a client of another make, and one that is not there."""

    root_client: Any = object()
    root_async_client: Any = None


def test_clients_of_another_make_are_left_alone() -> None:
    model = Half(responses=["x"])
    copy = sampling_copy(model, temperature=1.0, max_tokens=None)
    assert isinstance(copy, Half)
    assert copy.root_client is model.root_client
    assert copy.root_async_client is None


async def test_the_copy_does_not_retry_by_itself() -> None:
    with ChatServer([error(503)]) as server:
        model = chat_openai(server, max_retries=3)
        copy = sampling_copy(model, temperature=1.0, max_tokens=None)
        with pytest.raises(openai.InternalServerError):
            copy.invoke("x")
        with pytest.raises(openai.InternalServerError):
            await copy.ainvoke("x")
        assert len(server.requests) == 2


def test_the_copys_requests_carry_its_settings() -> None:
    with ChatServer(always("Paris")) as server:
        model = chat_openai(server, temperature=0, seed=3, n=2, streaming=False)
        copy = sampling_copy(model, temperature=1.0, max_tokens=12)
        assert copy.invoke("x").content == "Paris"
        (request,) = server.requests
    assert request.temperature == 1.0
    assert request.body["max_completion_tokens"] == 12
    assert not {"seed", "n", "store"} & set(request.body)
    assert request.stream is False


# --- side effects, abilities -------------------------------------------------------

FUNCTION = {"type": "function", "function": {"name": "f"}}
SEARCH = {"type": "web_search"}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, False),
        ({"tools": None}, False),
        ({"tools": [FUNCTION, {"name": "own", "input_schema": {}}]}, False),
        ({"tools": [{"type": "custom", "name": "own"}]}, False),
        ({"tools": [object()]}, False),
        ({"tools": [FUNCTION, SEARCH]}, True),
        ({"tools": [{"type": "code_execution_20250825", "name": "x"}]}, True),
        ({"conversation": "conv_1"}, True),
        ({"conversation": None}, False),
    ],
)
@pytest.mark.parametrize("place", ["bound", "call", "model_kwargs", "extra_body"])
def test_what_a_further_draw_would_do_is_known(
    place: str, options: dict[str, Any], *, found: bool
) -> None:
    in_model = {place: options} if place in {"model_kwargs", "extra_body"} else {}
    bound = options if place == "bound" else {}
    candidate = Candidate(model=gpt(**in_model), kwargs=bound)
    assert side_effects(candidate, options if place == "call" else {}) is found


def test_the_options_of_the_call_stand_before_those_bound() -> None:
    candidate = Candidate(model=fake(), kwargs={"tools": [SEARCH]})
    assert side_effects(candidate, {"tools": []}) is False


class Compatible(ChatOpenAI):
    """A provider's class that is built on langchain-openai's."""


@pytest.mark.parametrize(
    ("model", "kwargs", "speaks"),
    [
        (gpt(), {}, True),
        (Compatible(model="m", api_key=SecretStr("test")), {}, True),
        (gpt(use_responses_api=True), {}, False),
        (gpt(use_responses_api=False), {"tools": [SEARCH]}, True),
        (gpt(), {"tools": [SEARCH]}, False),
        (gpt(model_kwargs={"tools": [SEARCH]}), {}, False),
        (gpt(), {"tools": [FUNCTION]}, True),
        (fake(), {}, False),
    ],
)
def test_whether_n_and_log_probabilities_may_work_is_known(
    model: BaseChatModel, kwargs: dict[str, Any], *, speaks: bool
) -> None:
    row = Candidate(model=model, kwargs=kwargs).provider
    assert row.supports_batch is row.supports_logprobs is speaks


class BaseChatOpenAI(FakeListChatModel):
    """Has the name of langchain-openai's class, of a version without the choice."""

    use_responses_api: bool = False


def test_another_version_of_the_class_is_asked_by_its_field() -> None:
    model = BaseChatOpenAI(responses=["x"])
    assert Candidate(model=model).provider.supports_batch
    other = BaseChatOpenAI(responses=["x"], use_responses_api=True)
    assert not Candidate(model=other).provider.supports_batch


@pytest.mark.parametrize(
    ("model", "kwargs", "asked"),
    [
        (gpt(), {}, False),
        (gpt(logprobs=True), {}, True),
        (gpt(), {"logprobs": True}, True),
        (gpt(logprobs=True), {"logprobs": False}, False),
        (fake(), {}, False),
    ],
)
def test_what_the_user_asked_for_is_known(
    model: BaseChatModel, kwargs: dict[str, Any], *, asked: bool
) -> None:
    assert Candidate(model=model, kwargs=kwargs).asked("logprobs") is asked
