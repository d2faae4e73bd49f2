"""A program for a newer langchain-core: refuses, and prints what came of it as JSON.

Run by ``tests/langchain/test_refusal_on_newer_core.py`` in an environment of its own.
"""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import langchain_core
from langchain_core import exceptions
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

import snne_guard
from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.chat_server import ChatServer, chat_openai, cycle
from tests.support.handlers import find_text

ANSWERS = ["It was Verdi", "Probably 1871", "Nobody knows", "In Cairo, I think"]
REFUSAL = "I would rather not say."


def main() -> None:
    """Print the facts that the test compares."""
    with ChatServer(cycle(ANSWERS)) as server:
        facts = {
            "version": langchain_core.__version__,
            "raise": _raised(server),
            "refuse": asyncio.run(_refused(server)),
            "sent_back": _sent_back(server),
        }
    print(json.dumps(facts))  # noqa: T201 - the test reads it


def _guard(model: BaseChatModel, on_uncertain: Any) -> SNNEGuard:
    return SNNEGuard(
        model, n=3, threshold=0.1, on_uncertain=on_uncertain, refusal=REFUSAL
    )


def _raised(server: ChatServer) -> dict[str, Any]:
    guard = _guard(chat_openai(server), "raise")
    # Not in the version that the type checker sees.
    refusal_error: type[Exception] = vars(exceptions)["ModelRefusalError"]
    try:
        guard.invoke("Who wrote it?")
    except snne_guard.UncertainAnswerError as error:
        caught = error
    backup = RunnableLambda[Any, AIMessage](lambda _: AIMessage("from the backup"))
    safe = guard.with_fallbacks([backup], exceptions_to_handle=(refusal_error,))
    model = GuardedChatModel(guard).with_fallbacks([backup])
    again = pickle.loads(pickle.dumps(caught))  # noqa: S301 - made a line above
    return {
        "is_model_refusal": isinstance(caught, refusal_error),
        "is_model_error": isinstance(caught, exceptions.ModelError),
        "is_retryable": caught.is_retryable,
        "threshold": caught.threshold,
        "after_pickling": [type(again) is type(caught), str(again) == str(caught)],
        "leaks": [text for text in ANSWERS if find_text(text, caught)],
        "fallback": safe.invoke("Who wrote it?").content,
        "fallback_of_model": model.invoke("Who wrote it?").content,
    }


async def _refused(server: ChatServer) -> dict[str, Any]:
    guard = _guard(chat_openai(server), "refuse")
    other = _guard(FakeListChatModel(responses=ANSWERS), "refuse")
    streamed: Any = None
    async for chunk in guard.astream("Who wrote it?"):
        streamed = chunk if streamed is None else streamed + chunk
    return {
        "invoke": _shown(guard.invoke("Who wrote it?")),
        "ainvoke": _shown(await guard.ainvoke("Who wrote it?")),
        "astream": _shown(streamed),
        "chat model": _shown(GuardedChatModel(guard).invoke("Who wrote it?")),
        "another provider": _shown(await other.ainvoke("Who wrote it?")),
    }


def _sent_back(server: ChatServer) -> dict[str, Any]:
    model = chat_openai(server)
    refused = _guard(model, "refuse").invoke("Who wrote it?")
    model.invoke([HumanMessage("Who wrote it?"), refused, HumanMessage("Try!")])
    return server.requests[-1].messages[1]


def _shown(message: BaseMessage) -> dict[str, Any]:
    blocks: list[Any] = list(message.content_blocks)
    return {
        "type": message.type,
        "text": str(message.text),
        "refusals": [b.get("refusal") for b in blocks if b["type"] == "refusal"],
        "known": snne_guard.langchain.is_refusal(message),
        "leaks": [text for text in ANSWERS if find_text(text, message)],
    }


if __name__ == "__main__":
    main()
