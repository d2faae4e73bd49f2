"""A user's rules and stores that end in a cancellation of their own."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from snne_guard import ModelCancelledError, Monitor, SNNEGuard
from tests.support.guarding import WAYS, Witness, ask, record

Cancelled = type[BaseException]
CANCELLED = pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError, concurrent.futures.CancelledError],
    ids=["asyncio", "futures"],
)
EACH = pytest.mark.parametrize("way", WAYS)


def ending_in(error: Cancelled) -> Callable[..., Any]:
    def end(*_args: Any, **_kwargs: Any) -> Any:
        raise error

    return end


def guarded(**options: Any) -> SNNEGuard:
    return SNNEGuard(
        FakeListChatModel(responses=["Paris"]), n=3, threshold=0.5, **options
    )


@CANCELLED
@EACH
@pytest.mark.parametrize("rule", ["question", "sample_when"])
def test_a_rule_that_cancels_itself_has_failed(
    rule: str, way: str, error: Cancelled
) -> None:
    found = record(ask(guarded(**{rule: ending_in(error)}), "x", way))
    assert (found["decision"], found["n_used"]) == ("accept", 3)
    assert f"{rule}_failed" in found["reasons"]


class Broken:
    """A store that ends so, whatever is to be kept."""

    def __init__(self, error: Cancelled) -> None:
        self._error = error

    def update(self, key: str, change: Callable[[str | None], str], /) -> None:
        del key, change
        raise self._error


@CANCELLED
@EACH
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_an_answer_is_not_lost_to_a_store_that_cancels_itself(
    timeout: float | None, way: str, error: Cancelled
) -> None:
    monitor = Monitor(store=Broken(error))
    message = ask(guarded(monitor=monitor, timeout=timeout), "x", way)
    found = record(message)
    assert (message.content, found["decision"]) == ("Paris", "flag")
    assert "monitor_failed" in found["reasons"]


@CANCELLED
@EACH
def test_a_tool_rule_that_cancels_itself_has_failed_as_one_that_raises(
    way: str, error: Cancelled
) -> None:
    call = {"name": "look", "args": {}, "id": "1", "type": "tool_call"}
    model = FakeMessagesListChatModel(
        responses=[AIMessage(content="", tool_calls=[call])]
    )
    witness = Witness()
    guard = SNNEGuard(
        model, n=3, threshold=0.5, tool_calls=ending_in(error), observers=[witness]
    )
    told = "the tool_calls function cancelled itself; nobody cancelled"
    with pytest.raises(ModelCancelledError, match=told) as caught:
        ask(guard, "x", way)
    assert isinstance(caught.value.__cause__, error)
    assert "cancelled" not in witness.last.reasons


@CANCELLED
@pytest.mark.parametrize(
    "examine",
    [SNNEGuard.preflight, lambda guard: asyncio.run(guard.apreflight())],
    ids=["preflight", "apreflight"],
)
def test_a_model_that_cancels_itself_fails_its_preflight_at_once(
    examine: Callable[[SNNEGuard], object], error: Cancelled
) -> None:
    class Cancelling(FakeListChatModel):
        def _call(self, *_args: Any, **_kwargs: Any) -> str:
            raise error

    guard = SNNEGuard(Cancelling(responses=["x"]), n=3)
    with pytest.raises(ModelCancelledError):
        examine(guard)
