"""Guards that start from a calibration, on a chat server that follows a script."""

from __future__ import annotations

from typing import Any

from snne_guard import SNNEGuard
from tests.support.calibrated import calibration
from tests.support.chat_server import ChatServer, Reply, Request, chat_openai
from tests.support.guarding import is_sample, record

__all__ = ["QUESTION", "calibrated", "missing_one", "said"]

QUESTION = "What is the capital of France?"


def calibrated(server: ChatServer, made: Any = None, **options: Any) -> SNNEGuard:
    found = calibration() if made is None else made
    return SNNEGuard.from_calibration(chat_openai(server), found, **options)


def said(script: Any, made: Any = None, **options: Any) -> dict[str, Any]:
    """Return the record of one answer of a calibrated guard."""
    with ChatServer(script) as server:
        return record(calibrated(server, made, **options).invoke(QUESTION))


def missing_one(request: Request) -> Reply:
    if not is_sample(request):
        return Reply(texts=["Paris"])
    return Reply(texts=["Paris", "Paris", "Paris", ""])
