"""What a guard adds to the time and the price of one call, under heavy-tailed latency.

A local server, in a process of its own, takes a lognormal time for each reply: the
95th percentile is about three medians, as people measure it of public APIs. It finds a
prompt in its cache once a reply to it has been given. The same questions, with the same
delays, go to the bare model and to guards of n = 5 on both schedules, with and without
a time limit for the samples, each sample a request of its own. What the waiting alone
comes to follows from the delays; the exit status is 1 if a guard takes much longer.

    python benchmarks/latency.py
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard import Cost, Prices, SNNEGuard
from snne_guard.types import Schedule
from tests.support.chat_server import ChatServer, Reply, Request, Usage, rejecting_n
from tests.support.guarding import is_sample

ROOT = Path(__file__).resolve().parents[1]
N = 5  # members of the response set
CALLS = 80  # of each kind
AT_ONCE = 4  # of them, so that the client's own work does not take the time
MEDIAN, SIGMA = 0.2, 0.7  # of the lognormal time for a reply, in seconds
PATIENCE = 2 * MEDIAN  # sample_timeout, where there is one
MOST = 1.25  # of the time that the waiting alone comes to
PROMPT, REPLY, CACHED = 1500, 50, 1408  # tokens; providers cache whole blocks
OUTPUT_PRICE = 4.0  # of a written token over that of a read one
DISCOUNTS = (1.0, 0.5, 0.1)  # price of a cached token over that of another


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way to guard a call.

    Attributes:
        schedule: When the samples are asked for.
        sample_timeout: Seconds after which what has arrived is scored.
    """

    schedule: Schedule
    sample_timeout: float | None = None

    @property
    def name(self) -> str:
        limit = "" if self.sample_timeout is None else ", `sample_timeout`"
        return f'`"{self.schedule}"`{limit}'

    def waiting(self, delays: Sequence[float]) -> float:
        """Return the seconds that a call waits at least: the answer's delay first."""
        answer, samples = delays[0], max(delays[1:])
        if self.sample_timeout is not None:
            samples = min(samples, self.sample_timeout)
        together = self.schedule == "concurrent"
        return max(answer, samples) if together else answer + samples


CASES = (
    Case(schedule="concurrent"),
    Case(schedule="concurrent", sample_timeout=PATIENCE),
    Case(schedule="answer_first"),
    Case(schedule="answer_first", sample_timeout=PATIENCE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the calls of one kind came to.

    Attributes:
        seconds: How long each took.
        costs: What each took in tokens.
        members: Members that were scored, the mean of the calls.
    """

    seconds: tuple[float, ...]
    costs: tuple[Cost, ...]
    members: float = 1.0

    def money(self, discount: float) -> float:
        prices = Prices(prompt=1.0, completion=OUTPUT_PRICE, cached=discount)
        return sum(prices.money(cost) for cost in self.costs)


@cache
def ranks(position: int) -> list[int]:
    """Return each question's place when all are sorted by how long a reply takes."""
    places = list(range(CALLS))
    random.Random(position).shuffle(places)  # noqa: S311 - no secret
    return places


def delays(number: int) -> list[float]:
    """Return how long the answer and each sample of a question take, in seconds.

    They are evenly spread quantiles in random order, so that so few calls have the
    tail that many would have.
    """
    logarithm = statistics.NormalDist(math.log(MEDIAN), SIGMA)
    shares = [(ranks(position)[number % CALLS] + 0.5) / CALLS for position in range(N)]
    return [math.exp(logarithm.inv_cdf(share)) for share in shares]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so large a share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


class Provider:
    """Answers "KIND NUMBER" after that question's delays, with a cache for prompts."""

    def __init__(self) -> None:
        self._drawn: dict[str, int] = {}
        self._warm: dict[str, float] = {}

    def __call__(self, request: Request) -> Reply:
        prompt, position = request.prompt, 0
        if is_sample(request):
            position = self._drawn[prompt] = self._drawn.get(prompt, 0) + 1
        delay = delays(int(prompt.split()[-1]))[position]
        warm = self._warm.get(prompt, math.inf) <= request.arrived
        done = request.arrived + delay
        self._warm[prompt] = min(done, self._warm.get(prompt, math.inf))
        usage = Usage(prompt=PROMPT, completion=REPLY, cached=CACHED if warm else 0)
        return Reply(texts=["Paris"], delay=delay, usage=usage)


def serve() -> None:
    """Serve until the standard input ends, after printing the URL."""
    with ChatServer(rejecting_n(Provider())) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextmanager
def served() -> Iterator[ChatOpenAI]:
    """Run the server in a process of its own, and yield its client."""
    command = [sys.executable, "-m", "benchmarks.latency", "--serve"]
    with subprocess.Popen(  # noqa: S603 - this interpreter, this program
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip() if process.stdout else ""
        yield ChatOpenAI(
            model="test-model", api_key=SecretStr("test"), base_url=url, max_retries=0
        )
        process.communicate()  # closes its input, which ends it


async def bare(model: ChatOpenAI) -> Result:
    """Ask the model itself."""

    async def ask(number: int) -> tuple[float, Cost, int]:
        start = time.perf_counter()
        message = await model.ainvoke(f"bare {number}")
        seconds = time.perf_counter() - start
        usage = message.usage_metadata
        if usage is None:
            raise AssertionError(message)
        cost = Cost(
            prompt_tokens=usage["input_tokens"],
            completion_tokens=usage["output_tokens"],
        )
        return seconds, cost, 1

    return await gathered(ask)


async def guarded(model: ChatOpenAI, case: Case) -> Result:
    """Ask a guard on the model."""
    guard = SNNEGuard(
        model, n=N, schedule=case.schedule, sample_timeout=case.sample_timeout
    )
    kind = f"{case.schedule} {case.sample_timeout}"
    await guard.ainvoke(f"{kind} warm-up 0")  # settles that n is not taken

    async def ask(number: int) -> tuple[float, Cost, int]:
        start = time.perf_counter()
        message = await guard.ainvoke(f"{kind} {number}")
        seconds = time.perf_counter() - start
        found: dict[str, Any] = message.response_metadata["snne_guard"]
        if case.sample_timeout is None and found["n_used"] != N:
            raise AssertionError(found)
        return seconds, Cost(**found["cost"]), found["n_used"]

    return await gathered(ask)


async def gathered(ask: Any) -> Result:  # noqa: ANN401 - an async function
    """Ask every question, a few at once."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> tuple[float, Cost, int]:
        async with places:
            told: tuple[float, Cost, int] = await ask(number)
            return told

    done = await asyncio.gather(*(one(number) for number in range(CALLS)))
    seconds, costs, members = zip(*done, strict=True)
    return Result(seconds=seconds, costs=costs, members=statistics.mean(members))


HEADINGS = (
    "schedule",
    "added p50 (waiting alone)",
    "added p95 (waiting alone)",
    "members scored",
    *("cost, no prompt cache", "cached at 50 %", "cached at 10 %"),
)


def added(seconds: Sequence[float], plain: Sequence[float]) -> list[float]:
    """Return what is added to p50 and p95, over p50 of the bare calls."""
    unit = percentile(plain, 0.5)
    return [
        (percentile(seconds, share) - percentile(plain, share)) / unit
        for share in (0.5, 0.95)
    ]


def row(case: Case, result: Result, plain: Result) -> tuple[str, ...]:
    """Return one line of the table, all of it over the bare calls."""
    measured = added(result.seconds, plain.seconds)
    answers = [delays(number)[0] for number in range(CALLS)]
    waiting = added([case.waiting(delays(number)) for number in range(CALLS)], answers)
    pairs = zip(measured, waiting, strict=True)
    # What was cut off is perhaps billed all the same.
    least = "at least " if any(cost.lower_bound for cost in result.costs) else ""
    return (
        case.name,
        *(f"{took:.1f} ({waited:.1f})" for took, waited in pairs),
        f"{result.members:.1f} of {N}",
        *(f"{least}{result.money(p) / plain.money(1.0):.1f}" for p in DISCOUNTS),
    )


async def main() -> int:
    met = True
    with served() as model:
        await model.ainvoke("warm-up 0")
        plain = await bare(model)
        p50, p95 = (percentile(plain.seconds, share) for share in (0.5, 0.95))
        print(f"one unguarded call: p95 is {p95 / p50:.1f} times p50; p50 is the unit")
        for cells in (HEADINGS, ("---",) * len(HEADINGS)):
            print(f"| {' | '.join(cells)} |")
        notes = []
        for case in CASES:
            result = await guarded(model, case)
            print(f"| {' | '.join(row(case, result, plain))} |", flush=True)
            waiting = [case.waiting(delays(number)) for number in range(CALLS)]
            ratio = percentile(result.seconds, 0.5) / percentile(waiting, 0.5)
            met &= ratio <= MOST
            verdict = "ok" if ratio <= MOST else "MISSED"
            notes.append(f"{ratio:>6.3f}  {case.name:<34} most {MOST}  {verdict}")
    print("p50 over what the waiting alone comes to")
    print("\n".join(notes))
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Added latency and its price.")
    parser.add_argument("--serve", action="store_true", help="be the local server")
    if parser.parse_args().serve:
        serve()
        sys.exit(0)
    sys.exit(asyncio.run(main()))
