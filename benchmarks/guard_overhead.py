"""What the guard adds to the calls that it makes.

A local server, in a process of its own, answers each request after 200 ms. Guarded
calls and a bare ``abatch`` of as many requests take turns, and the shortest of several
rounds counts; beside its time stands the CPU time of this process, the least of the
rounds too. Then ten answers of 500 words are scored while a heartbeat measures how
long the event loop stands still. The exit status is 1 if a target is missed.

    python benchmarks/guard_overhead.py
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard import SNNEGuard

ROOT = Path(__file__).resolve().parents[1]
DELAY = 0.2  # seconds that the server takes for a request
N = 5  # members of the response set
AT_ONCE = 200  # guarded calls at the same time
MOST_TIME = 1.05  # of the bare calls' time
MOST_TIME_AT_ONCE = 1.25  # the same where few requests bring many replies to score
MOST_HELD = 0.005  # seconds that scoring may hold the event loop
QUESTION = "Who built the bridge over the river, and in which year was it opened?"
SAMPLES = 10  # answers that are scored under the heartbeat
WORDS = 500  # words in each of them


@dataclass(frozen=True, kw_only=True)
class Case:
    """Guarded calls beside bare ones.

    Attributes:
        name: What it is.
        single: Whether each sample is a request of its own.
        calls: Guarded calls at once.
        rounds: How often each is timed.
        most: What the guarded calls may take, as a share of the bare ones' time.
        replies: Whether there are as many bare calls as replies, each with a request
            of its own, rather than as many as the guard sends requests.
    """

    name: str
    single: bool
    calls: int
    rounds: int
    most: float
    replies: bool = False

    async def bare(self, model: ChatOpenAI) -> None:
        """Draw what the guarded calls draw, by ``abatch`` and unguarded."""
        each = 1 if self.single or self.replies else N - 1
        answer = model.bind(logprobs=True)
        sample = model.bind(logprobs=True, temperature=1.0, n=each)
        questions: list[LanguageModelInput] = [QUESTION] * self.calls
        samples = questions * ((N - 1) // each)
        await asyncio.gather(answer.abatch(questions), sample.abatch(samples))


CASES = (
    Case(
        name="one call, one request for all samples",
        single=False,
        calls=1,
        rounds=15,
        most=MOST_TIME,
    ),
    Case(
        name="one call, a request a sample",
        single=True,
        calls=1,
        rounds=15,
        most=MOST_TIME,
    ),
    Case(
        name=f"{AT_ONCE} at once, beside as many bare calls as replies",
        single=False,
        calls=AT_ONCE,
        rounds=4,
        most=MOST_TIME,
        replies=True,
    ),
    Case(
        name=f"{AT_ONCE} at once, one request for all samples",
        single=False,
        calls=AT_ONCE,
        rounds=4,
        most=MOST_TIME_AT_ONCE,
    ),
    Case(
        name=f"{AT_ONCE} at once, a request a sample",
        single=True,
        calls=AT_ONCE,
        rounds=4,
        most=MOST_TIME,
    ),
)


def answers(count: int, words: int) -> list[str]:
    """Return answers that share two words in three, and in which no two are equal."""
    return [
        " ".join(
            f"word{i}" if i % 3 else f"own{(i * 7 + k * 131) % 997}"
            for i in range(words)
        )
        for k in range(count)
    ]


@contextmanager
def served(*options: str) -> Iterator[ChatOpenAI]:
    """Run the server of the tests in a process of its own, and yield its client."""
    texts = [part for text in answers(7, 20) for part in ("--text", text)]
    command = [sys.executable, "-m", "tests.support.chat_server", *texts, *options]
    with subprocess.Popen(  # noqa: S603 - this interpreter, a program of this project
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip() if process.stdout else ""
        yield ChatOpenAI(
            model="test-model", api_key=SecretStr("test"), base_url=url, max_retries=0
        )
        process.communicate()  # closes its input, which ends it


class Taken(NamedTuple):
    """What calls took, in seconds.

    Attributes:
        time: From the first to the last.
        cpu: Of the CPU, by this process: the server is another one.
    """

    time: float
    cpu: float

    @classmethod
    def least(cls, rounds: Sequence[Taken]) -> Taken:
        """Return the shortest time and the least CPU time of several rounds."""
        return cls(*map(min, zip(*rounds, strict=True)))


async def taken(run: Awaitable[object]) -> Taken:
    """Return what a call takes."""
    start, cpu = time.perf_counter(), time.process_time()
    await run
    return Taken(time.perf_counter() - start, time.process_time() - cpu)


async def compared(case: Case, model: ChatOpenAI) -> tuple[Taken, Taken]:
    """Return the least that guarded and that bare calls took, in turn."""
    guard = SNNEGuard(model, n=N, schedule="concurrent")
    first = await guard.ainvoke(QUESTION)  # settles what the provider can do
    if first.response_metadata["snne_guard"]["method"] != "wsnne":
        raise AssertionError(first.response_metadata)  # the bare calls ask for the same
    await case.bare(model)
    guarded, bare = list[Taken](), list[Taken]()
    for _ in range(case.rounds):
        bare.append(await taken(case.bare(model)))
        guarded.append(await taken(asked(guard, case.calls)))
    return Taken.least(guarded), Taken.least(bare)


async def asked(guard: SNNEGuard, calls: int) -> None:
    """Ask so many times at once, and see that every answer was scored."""
    for message in await guard.abatch([QUESTION] * calls):
        used = message.response_metadata["snne_guard"]
        if used["n_used"] != N or used["reasons"] != ["no_threshold"]:
            raise AssertionError(used)


class Ready(BaseChatModel):
    """A model whose replies lie ready, so that nothing but the guard takes time."""

    texts: Sequence[str]

    @property
    def _llm_type(self) -> str:
        return "ready"

    def _generate(self, *_args: object, **_kwargs: object) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        del messages, stop, run_manager, kwargs
        await asyncio.sleep(0.02)
        self.texts, text = [*self.texts[1:], self.texts[0]], self.texts[0]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


async def longest_gap(run: Callable[[], Awaitable[object]]) -> float:
    """Return the longest time between two turns of the event loop during a call."""
    longest, last = 0.0, time.perf_counter()

    async def beat() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    beating = asyncio.create_task(beat())
    await run()
    beating.cancel()
    return longest


async def held() -> tuple[float, float]:
    """Return how long a guarded and a bare call hold the loop, in seconds."""
    model = Ready(texts=answers(SAMPLES, WORDS))
    guard = SNNEGuard(model, n=SAMPLES)
    await guard.ainvoke(QUESTION)
    guarded, bare = [], []
    for _ in range(20):
        bare.append(await longest_gap(lambda: model.abatch([QUESTION] * SAMPLES)))
        guarded.append(await longest_gap(lambda: guard.ainvoke(QUESTION)))
    return min(guarded), min(bare)


async def overhead() -> bool:
    """Print what each case takes beside its bare requests."""
    met = True
    print(f"guarded calls over the same requests, {DELAY * 1000:.0f} ms each")
    print("  time     CPU")
    for case in CASES:
        options = ("--max-n", "1") if case.single else ()
        with served("--delay", str(DELAY), *options) as model:
            guarded, bare = await compared(case, model)
        good = guarded.time <= case.most * bare.time
        met &= good
        print(
            f"{guarded.time / bare.time:>6.3f}  {guarded.cpu / bare.cpu:>6.3f}  "
            f"{case.name:<53} {guarded.time * 1000:7.0f} over "
            f"{bare.time * 1000:6.0f} ms, CPU {guarded.cpu / case.calls * 1000:.1f} "
            f"over {bare.cpu / case.calls * 1000:.1f} ms a call; time at most "
            f"{case.most}  {'ok' if good else 'MISSED'}"
        )
    return met


async def main() -> int:
    met = await overhead()
    guarded, bare = await held()
    good = guarded <= MOST_HELD
    print(f"event loop held while {SAMPLES} answers of {WORDS} words are scored")
    print(
        f"{guarded * 1000:>6.2f}  ms; {bare * 1000:.2f} ms by as many bare calls; "
        f"most {MOST_HELD * 1000:.0f}  {'ok' if good else 'MISSED'}"
    )
    return 0 if met and good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
