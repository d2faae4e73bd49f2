"""What a guard adds to the requests that it sends.

A local server answers each request after 200 ms. Guarded calls and the same requests on
the bare model take turns, and the median ratio of nine rounds counts: where the machine
is slower for a while, it is so for both. With 200 calls at once it is no longer the
server but the client's own work that takes the time, so there the guard's share is
larger. A call with a self-check is compared with two requests, one after the other;
one with another model with the same requests to both.

    python -m benchmarks.guard_overhead

The exit status is 1 where a ratio misses its target.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from benchmarks._server import served
from snne_guard import SNNEGuard

SECONDS = 0.2
N = 5
AT_ONCE = 200
ROUNDS = 9
IN_A_ROW = 5
MOST = {1: 1.03, AT_ONCE: 1.25}
QUESTION = "Who built the bridge over the river, and in which year was it opened?"

Chat = Runnable[LanguageModelInput, AIMessage]

Rounds = list[tuple[float, float]]
"""Seconds of guarded and of bare calls, in turns."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Guarded calls beside bare ones.

    Attributes:
        calls: Guarded calls at once.
        by_tasks: Whether tasks of an event loop make them, or threads.
        other_model: Whether another model draws one of the samples.
    """

    calls: int
    by_tasks: bool
    other_model: bool = False

    def __str__(self) -> str:
        way = "tasks" if self.by_tasks else "threads"
        models = " with another model" if self.other_model else ""
        return f"{self.calls:>3} by {way}{models}"

    def run(self, url: str) -> Rounds:
        """Return what guarded and bare calls take."""
        model = chat("test", url)
        others = [chat("other", url)] if self.other_model else []
        guard = SNNEGuard(model, n=N, other_models=others)
        answer = model.bind(logprobs=True)
        own = N - 1 - len(others)
        samples = model.bind(logprobs=True, temperature=1.0, n=own)
        bare: list[Chat] = [answer, samples, *others] * self.calls
        guarded: list[Chat] = [guard] * self.calls
        with asyncio.Runner() as loop:
            # Settles what the server takes, then opens the connections.
            for chats in (guarded[:1], bare):
                self._seconds(chats, loop)
            return [
                (self._seconds(guarded, loop), self._seconds(bare, loop))
                for _ in range(ROUNDS)
            ]

    def _seconds(self, chats: Sequence[Chat], loop: asyncio.Runner) -> float:
        """Return what a round takes: a single call is made several times in it."""
        repeats = IN_A_ROW if self.calls == 1 else 1
        start = time.perf_counter()
        for _ in range(repeats):
            found = loop.run(tasks(chats)) if self.by_tasks else threads(chats)
        seconds = (time.perf_counter() - start) / repeats
        for message in found:
            check(message)
        return seconds


CASES = [
    *(Case(calls=1, by_tasks=by_tasks, other_model=True) for by_tasks in (False, True)),
    *(
        Case(calls=calls, by_tasks=by_tasks)
        for calls in (1, AT_ONCE)
        for by_tasks in (False, True)
    ),
]


def chat(name: str, url: str) -> ChatOpenAI:
    """Return a model on the server."""
    return ChatOpenAI(
        model=name, api_key=SecretStr("test"), base_url=url, max_retries=0
    )


def with_self_check(url: str) -> Rounds:
    """Return what a guarded call with a self-check takes, and two requests."""
    model = chat("test", url)
    guard = SNNEGuard(model, n=N, self_check=True)
    answer = model.bind(logprobs=True)

    def seconds(*chats: Chat) -> float:
        start = time.perf_counter()
        for _ in range(IN_A_ROW):
            for chat in chats:
                chat.invoke(QUESTION)
        return (time.perf_counter() - start) / IN_A_ROW

    seconds(guard)  # opens the connections
    return [(seconds(guard), seconds(answer, answer)) for _ in range(ROUNDS)]


def threads(chats: Sequence[Chat]) -> list[AIMessage]:
    """Ask all models at once, each in a thread."""
    with ThreadPoolExecutor(len(chats)) as pool:
        return list(pool.map(lambda chat: chat.invoke(QUESTION), chats))


async def tasks(chats: Sequence[Chat]) -> list[AIMessage]:
    """Ask all models at once, each in a task."""
    return await asyncio.gather(*(chat.ainvoke(QUESTION) for chat in chats))


def check(message: AIMessage) -> None:
    """See that a guarded answer was scored, with the log-probabilities."""
    found = message.response_metadata.get("snne_guard")
    method = "snne" if found and "other_models" in found else "wsnne"
    if found and (found["n_used"], found["method"]) != (N, method):
        raise AssertionError(found)


def report(what: object, rounds: Rounds, *, most: float) -> bool:
    """Print the median ratio of the rounds; return whether it meets its target."""
    ratio = median(guarded / bare for guarded, bare in rounds)
    guarded, bare = (median(seconds) * 1000 for seconds in zip(*rounds, strict=True))
    good = ratio <= most
    print(
        f"{ratio:.3f} (<= {most})  {what}: {guarded:.0f} over {bare:.0f} ms"
        f"  {'ok' if good else 'MISSED'}",
        flush=True,
    )
    return good


def main() -> int:
    print(f"guarded calls over the same requests of {SECONDS * 1000:.0f} ms")
    with served(seconds=SECONDS) as url:
        rounds = with_self_check(url)
    met = report("  1 with a self-check", rounds, most=MOST[1])
    for case in CASES:
        # A server each: LangChain keeps a client by address, with its event loop.
        with served(seconds=SECONDS) as url:
            rounds = case.run(url)
        met &= report(case, rounds, most=MOST[case.calls])
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
