"""Chat models inside LangChain's wrappers are found, changed and asked."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from snne_guard.sampling.langchain import (
    LangChainSender,
    bound_models,
    capabilities,
    models_in,
    rebuild,
    retries_itself,
)
from tests.sampling.langchain.support import (
    ANSWER,
    SAMPLE,
    RejectedError,
    Scripted,
    ScriptedStream,
    sent,
    streamed,
)

WAYS = pytest.mark.parametrize("way", ["send", "asend"])

pytestmark = pytest.mark.usefixtures("table")


def draws(model: Any, **kwargs: Any) -> LangChainSender:
    return LangChainSender(model, [HumanMessage("x")], kwargs=kwargs)


def failing(times: int, error: Exception) -> Any:
    left = [error] * times

    def script(_call: Any) -> Any:
        return left.pop() if left else "Paris"

    return script


WRAPPERS: dict[str, Any] = {
    "itself": lambda model: model,
    "bind": lambda model: model.bind(stop=["."]),
    "with_config": lambda model: model.with_config(tags=["t"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=2),
    "with_fallbacks": lambda model: model.with_fallbacks([Scripted(text="Rome")]),
    "all": lambda model: (
        model.bind(stop=["."])
        .with_retry()
        .with_config(tags=["t"])
        .bind(top_p=0.9)
        .with_fallbacks([Scripted(text="Rome").bind(seed=1)])
    ),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_rebuild_changes_the_models_and_keeps_the_wrappers(name: str) -> None:
    model = Scripted(text="Paris")
    wrapper = WRAPPERS[name](model)
    before = repr(wrapper)
    changed = rebuild(wrapper, lambda inner: inner.model_copy(update={"text": "Oslo"}))
    assert models_in(wrapper)[0] is model
    models: list[Any] = [*models_in(changed)]
    assert {inner.text for inner in models} == {"Oslo"}
    assert repr(wrapper) == before
    texts = iter(["Paris", "Rome"])
    back = rebuild(
        changed, lambda inner: inner.model_copy(update={"text": next(texts)})
    )
    assert repr(back) == before
    assert changed.invoke("x").content == "Oslo"


def test_options_of_the_call_override_bound_ones_the_outer_the_inner() -> None:
    model = Scripted().bind(a=1, b=1, c=1).bind(b=2, c=2)
    ((_, options),) = bound_models(model, {"c": 3})
    assert options == {"a": 1, "b": 2, "c": 3}


@WAYS
@pytest.mark.parametrize("draw", [ANSWER, SAMPLE])
async def test_with_retry_is_carried_out_as_its_user_set_it(
    way: str, draw: Any
) -> None:
    model = ScriptedStream(script=failing(2, ConnectionError()))
    options: Any = {"wait_exponential_jitter": False}
    for attempts, enough in ((2, False), (3, True)):
        model.calls.clear()
        model.script = failing(2, ConnectionError())
        retried = model.with_retry(stop_after_attempt=attempts, **options)
        if enough:
            assert (await sent(draws(retried), draw, way)).samples[0].text == "Paris"
        else:
            with pytest.raises(ConnectionError):
                await sent(draws(retried), draw, way)
        assert len(model.calls) == attempts
    other = model.with_retry(retry_if_exception_type=(TimeoutError,), **options)
    model.script = failing(1, ConnectionError())
    with pytest.raises(ConnectionError):
        await sent(draws(other), draw, way)


@WAYS
@pytest.mark.parametrize("draw", [ANSWER, SAMPLE])
async def test_with_fallbacks_asks_the_next_after_an_error(way: str, draw: Any) -> None:
    first = ScriptedStream(script=failing(9, ConnectionError("first")))
    second = ScriptedStream(script=failing(9, TimeoutError("second")))
    spare = ScriptedStream(text="Rome")
    third = spare.bind(top_p=0.5)
    both = first.with_fallbacks([second, third])
    assert (await sent(draws(both), draw, way)).samples[0].text == "Rome"
    assert spare.calls[0].options == {"top_p": 0.5}
    with pytest.raises(ConnectionError, match="first"):
        await sent(draws(first.with_fallbacks([second])), draw, way)
    narrow = first.with_fallbacks([third], exceptions_to_handle=(TimeoutError,))
    with pytest.raises(ConnectionError, match="first"):
        await sent(draws(narrow), draw, way)


@WAYS
async def test_a_stream_falls_back_until_its_first_chunk(way: str) -> None:
    first = ScriptedStream(script=failing(9, ConnectionError()))
    both = first.with_fallbacks([ScriptedStream(text="Rome")])
    asking = draws(both)
    await streamed(asking, way)
    reply = asking.streamed()
    assert reply.first.text == "Rome"


@WAYS
async def test_a_rejected_parameter_is_no_reason_to_fall_back(way: str) -> None:
    def script(call: Any) -> Any:
        return RejectedError("no temperature") if call.temperature == 1.0 else "Paris"

    first = ScriptedStream(script=script)
    both = first.with_fallbacks([ScriptedStream(text="Rome")])
    reply = await sent(draws(both), SAMPLE, way)
    assert (reply.first.text, reply.temperature_set) == ("Paris", False)


def test_capabilities_are_those_of_every_model_inside(table: Any) -> None:
    known, unknown = ScriptedStream(), Scripted(profile={"temperature": False})
    assert table.n == "n"
    assert capabilities(known).logprobs
    both = capabilities(known.with_fallbacks([unknown]))
    assert (both.n, both.logprobs, both.temperature) == (True, True, False)


@pytest.mark.parametrize(
    ("make", "retries"),
    [
        (lambda model: model, False),
        (lambda model: model.bind(stop=["."]), False),
        (lambda model: model.with_retry().bind(stop=["."]), True),
        (lambda model: model.with_fallbacks([model.with_retry()]), False),
        (lambda model: model.with_retry().with_fallbacks([model.with_retry()]), True),
    ],
    ids=["itself", "bind", "retry", "one_of_two", "both"],
)
def test_who_retries(make: Any, *, retries: bool) -> None:
    assert retries_itself(make(Scripted())) is retries


@pytest.mark.parametrize(
    ("max_retries", "retries"), [(0, False), (2, True), (None, True)]
)
def test_max_retries_of_a_class(max_retries: int | None, *, retries: bool) -> None:
    class Client(Scripted):
        max_retries: int | None = 2

    assert retries_itself(Client(max_retries=max_retries)) is retries
