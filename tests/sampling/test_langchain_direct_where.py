"""Where requests may go past LangChain's callbacks: where nothing else is there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.runnables import RunnableBinding

from snne_guard.sampling import langchain_direct
from snne_guard.sampling.langchain_direct import ais_direct, is_bare, is_direct
from tests.sampling.models import fake, gpt

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])


def is_way_direct(way: str, model: BaseChatModel, options: dict[str, Any]) -> bool:
    return (is_direct if way == "threads" else ais_direct)(model, options)


# --- the model -----------------------------------------------------------------------

STEPS = {
    "threads": ("_convert_input", "invoke", "generate_prompt", "generate",
                "_generate_with_cache"),
    "tasks": ("_convert_input", "ainvoke", "agenerate_prompt", "agenerate",
              "_agenerate_with_cache"),
}  # fmt: skip
EVERY_STEP = [(way, step) for way, steps in STEPS.items() for step in steps]


def passing_on(step: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(BaseChatModel, step)(self, *args, **kwargs)

    return method


@pytest.mark.parametrize(("way", "step"), EVERY_STEP)
def test_a_class_with_a_step_of_its_own_keeps_it(way: str, step: str) -> None:
    kind = type("Own", (FakeListChatModel,), {step: passing_on(step)})
    model = kind(responses=["x"])
    assert not is_way_direct(way, model, {})
    other = "tasks" if way == "threads" else "threads"
    assert is_way_direct(other, model, {}) is (step not in STEPS[other])


@pytest.mark.parametrize(("way", "step"), EVERY_STEP)
def test_a_step_that_is_wrapped_for_all_models_is_kept(
    way: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = getattr(BaseChatModel, step)

    @functools.wraps(own)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return own(*args, **kwargs)

    assert is_way_direct(way, fake(), {})
    monkeypatch.setattr(BaseChatModel, step, wrapped)
    assert not is_way_direct(way, fake(), {})


class PassesForAFunction:
    """A wrapper like those of tracing libraries, which no ``isinstance`` tells."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    @property  # type: ignore[misc]  # it is how they do it
    def __class__(self) -> Any:
        return type(self.wrapped)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self.wrapped, instance)


@pytest.mark.parametrize(("way", "step"), EVERY_STEP)
def test_a_step_behind_a_proxy_is_kept(
    way: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = PassesForAFunction(getattr(BaseChatModel, step))
    monkeypatch.setattr(BaseChatModel, step, proxy)
    assert not is_way_direct(way, fake(), {})


@pytest.mark.parametrize(("way", "step"), EVERY_STEP)
def test_a_step_that_was_put_on_one_model_is_kept(way: str, step: str) -> None:
    model = fake()
    vars(model)[step] = functools.partial(getattr(BaseChatModel, step), model)
    assert not is_way_direct(way, model, {})


@WAYS
@pytest.mark.parametrize(
    "name", ["callbacks", "metadata", "run_id", "run_name", "tags"]
)
def test_options_that_generate_takes_for_itself_are_left_to_it(
    way: str, name: str
) -> None:
    assert not is_way_direct(way, fake(), {name: None})


@WAYS
def test_another_langchain_without_the_step_for_messages_is_asked_as_ever(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(langchain_direct, "_normalize", None)
    assert not is_way_direct(way, fake(), {})


# --- what is around the model --------------------------------------------------------


def test_options_and_configurations_that_are_bound_change_nothing_else() -> None:
    model = gpt()
    assert is_bare(model)
    assert is_bare(model.bind(stop=["a"]).with_config(tags=["t"]).bind(seed=1))
    assert is_bare(model.bind_tools([{"title": "t", "description": "d"}]))


class OwnBinding(RunnableBinding[Any, Any]):
    """A binding that does more than to bind."""

    async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
        return await super().ainvoke(*args, **kwargs)


def test_wrappers_that_do_more_are_called_themselves() -> None:
    model = gpt()
    for wrapper in (
        model.with_retry(),
        model.with_fallbacks([model]),
        model.with_listeners(on_start=print),
        OwnBinding(bound=model),
        model.with_retry().bind(stop=["a"]),
    ):
        assert not is_bare(wrapper)
