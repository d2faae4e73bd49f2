"""A program that ends, or forks, while its callback handler has work to do.

Started by ``test_callback_process``, with the address of the chat server.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard import Assessment, SNNEGuard
from snne_guard.assess import observe
from snne_guard_integrations.callback import ShadowCounts, SNNECallbackHandler


class Teller:
    """Says what was assessed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_assessment(self, found: Assessment) -> None:
        answer = "" if found.answer is None else found.answer.text
        say(f"{self.name}: assessed {answer}")


def say(line: str) -> None:
    # One write: several processes share the pipe.
    os.write(1, f"{line}\n".encode())


def handler_on(model: ChatOpenAI, teller: Teller, **options: Any) -> Any:
    guard = SNNEGuard(model, n=3, method="snne", max_concurrency=1, observers=[teller])
    return SNNECallbackHandler(guard, **options)


def leave(model: ChatOpenAI, name: str, prompt: str, exit_timeout: float) -> None:
    """Run the model twice and leave."""
    handler = handler_on(model, Teller(name), exit_timeout=exit_timeout)
    for _ in range(2):
        model.invoke(prompt, {"callbacks": [handler]})
    say(f"{name}: done")


def fork(model: ChatOpenAI) -> None:
    """Fork while one answer is being assessed and another one waits."""
    handler = handler_on(model, Teller("fork"))
    config: Any = {"callbacks": [handler]}
    for _ in range(2):
        model.invoke("held", config)
    # Not while the client is at work: a lock of its own would be held in the child.
    model.invoke("until a sample is held")
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        fresh = handler.counts == ShadowCounts()
        model.invoke("free", config)
        done = handler.flush()
        say(f"child: {fresh} {done} {handler.counts.assessed}")
        os._exit(0)
    os.waitpid(child, 0)
    model.invoke("release")
    say(f"parent: {handler.flush()} {handler.counts.assessed}")


def in_process(work: Callable[..., None], *args: Any) -> None:
    """Do something in a process of its own, which ends as programs do."""
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # rather than hang for ever
        logging.basicConfig(format=f"{args[1] if args[1:] else ''}: %(message)s")
        work(*args)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main(url: str) -> None:
    observe._FLUSH_SECONDS = 60.0  # however slow this machine is
    model = ChatOpenAI(model="test-model", base_url=url, api_key=SecretStr("x"))
    in_process(leave, model, "drain", "free", 300.0)
    in_process(leave, model, "drop", "stall", 0.0)
    in_process(leave, model, "hang", "stall", 0.2)
    in_process(fork, model)


if __name__ == "__main__":
    main(sys.argv[1])
