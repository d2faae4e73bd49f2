"""A thousand guarded calls at a provider that fails one request in five."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from snne_guard import SNNEGuard
from tests.support.chat_scripts import drawn
from tests.support.chat_server import ChatServer, Reply, Request, chat_openai, error
from tests.support.guarding import is_sample, record

N = 4
RATE = 0.2
MOST_ATTEMPTS = 4
"""The guard's default for one draw."""

FAULTS = (
    error(429, "slow down"),
    error(429, "slow down", retry_after=0.01),
    error(500),
    error(503, "overloaded"),
    Reply(drop=True),
)


class Flaky:
    """Fails one request in five, in a way of its own, and counts for each question."""

    def __init__(self, *, choices: int | None) -> None:
        self.sent: Counter[tuple[str, bool]] = Counter()
        self.failed: Counter[tuple[str, bool]] = Counter()
        self.tokens: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._choices = choices
        self.draws = 1 if choices is None else N - 1
        self.rate = 0.0

    def __call__(self, request: Request) -> Reply:
        question, sample = request.prompt, is_sample(request)
        choices = self._choices or request.n
        with self._lock:
            self.sent[question, sample] += 1
            key = question, sample, self.sent[question, sample]
            if drawn(*key) < self.rate:
                self.failed[question, sample] += 1
                return FAULTS[int(drawn("fault", *key) * len(FAULTS))]
            self.tokens[question] += choices * len(question.split())
        return Reply(choices=choices)  # each choice repeats the question


def check(server: Flaky, questions: Sequence[str], outcomes: Sequence[Any]) -> None:
    scored = 0
    for question, outcome in zip(questions, outcomes, strict=True):
        sent, failed = server.sent[question, True], server.failed[question, True]
        assert server.sent[question, False] == 1  # the client's own retries are off
        assert sent <= MOST_ATTEMPTS * server.draws
        if not isinstance(outcome, AIMessage):
            assert isinstance(outcome, openai.APIError)
            assert server.failed[question, False] == 1
            continue
        assert outcome.content == question
        found = record(outcome)
        cost, lost = found["cost"], N - found["n_used"]
        assert cost["attempts"] == 1 + sent
        assert cost["calls"] == 1 + sent - failed
        assert cost["completion_tokens"] == server.tokens[question]
        assert ("samples_failed" in found["reasons"]) == bool(lost)
        # A draw is given up only after its last attempt.
        assert failed >= MOST_ATTEMPTS * math.ceil(lost * server.draws / (N - 1))
        scored += found["uncertainty"] == 0.0
    assert scored > 0.7 * len(questions)


def test_no_thread_hangs_and_nothing_paid_is_lost() -> None:
    flaky = Flaky(choices=1)  # and n is ignored: each sample is a request of its own
    questions = [f"question number {i}" for i in range(300)]
    with ChatServer(flaky) as server:
        guard = SNNEGuard(chat_openai(server), n=N, method="snne")
        guard.invoke("so that it knows what comes back")
        flaky.rate = RATE
        with ThreadPoolExecutor(50) as pool:
            outcomes: list[Any] = list(
                pool.map(lambda question: _settled(guard, question), questions)
            )
    check(flaky, questions, outcomes)


async def test_no_task_hangs_and_nothing_paid_is_lost() -> None:
    flaky = Flaky(choices=None)
    questions = [f"question number {i}" for i in range(700)]
    with ChatServer(flaky) as server:
        guard = SNNEGuard(chat_openai(server), n=N, method="snne")
        flaky.rate = RATE
        limit: RunnableConfig = {"max_concurrency": 200}
        outcomes = await guard.abatch([*questions], limit, return_exceptions=True)
    check(flaky, questions, outcomes)


def _settled(guard: SNNEGuard, question: str) -> AIMessage | openai.APIError:
    try:
        return guard.invoke(question)
    except openai.APIError as raised:
        return raised
