"""Scoring that ends in a cancellation of its own, and callers who cancel during it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage

from snne_guard import SNNEGuard
from tests.support.guarding import ask, record

WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])
ENDS = pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError, concurrent.futures.CancelledError, RuntimeError],
    ids=["asyncio", "futures", "other"],
)
LYON = AIMessage("Lyon")


def guarded(similarity: Any, **options: Any) -> SNNEGuard:
    model = FakeListChatModel(responses=["Paris"])
    return SNNEGuard(model, n=3, threshold=0.5, similarity=similarity, **options)


def ending_in(error: type[BaseException]) -> Any:
    """Return a similarity that ends so, as one that asks a model may."""

    def similarity(_texts: Any, *, question: str | None = None) -> Any:
        raise error(question)

    return similarity


@ENDS
@pytest.mark.parametrize(
    ("options", "text", "decision"),
    [
        ({}, "Paris", "flag"),
        ({"timeout": 30.0}, "Paris", "flag"),
        ({"on_uncertain": "refuse", "on_error": "accept"}, "Paris", "unscored"),
        ({"on_uncertain": "fallback", "fallback": lambda _: LYON}, "Lyon", "fallback"),
    ],
)
@WAYS
def test_an_answer_is_not_lost_to_how_its_scoring_ends(
    way: str,
    options: dict[str, Any],
    text: str,
    decision: str,
    error: type[BaseException],
) -> None:
    message = ask(guarded(ending_in(error), **options), "x", way)
    found = record(message)
    assert (message.content, found["decision"]) == (text, decision)
    assert "scoring_failed" in found["reasons"]


@ENDS
@WAYS
def test_a_stopping_rule_that_ends_so_stops_nothing(
    way: str, error: type[BaseException]
) -> None:
    def rule(_score: Any, _missing: int) -> bool:
        raise error

    model = FakeListChatModel(responses=["Paris"])
    guard = SNNEGuard(model, n=4, rounds=(2, 4), threshold=0.5, stopping=rule)
    found = record(ask(guard, "x", way))
    assert (found["decision"], found["n_used"]) == ("accept", 4)


@pytest.mark.parametrize("seconds", [None, 30.0])
async def test_a_caller_who_cancels_during_scoring_is_cancelled(
    seconds: float | None,
) -> None:
    loop, begun, gate = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def waiting(texts: Any, *, question: str | None = None) -> Any:
        del question
        loop.call_soon_threadsafe(begun.set)
        gate.wait(60)
        return np.eye(len(texts))

    task = asyncio.create_task(guarded(waiting, timeout=seconds).ainvoke("x"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert task.cancelled()
