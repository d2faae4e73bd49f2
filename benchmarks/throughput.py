"""How many requests a second get through a guard, and whether its memory grows.

A local server, in a process of its own, answers each request after 200 ms. A thousand
guarded calls send two requests each, for the answer and for all samples; a bare
``abatch`` sends as many of either kind, with as many in flight. Both run in four
quarters that take turns, and the CPU time of this process is that of the quarter that
took the least; the objects that are alive after the guard's first quarter
are compared with those after its last. The exit status is 1 if a target is missed.

    python -m benchmarks.throughput
"""

from __future__ import annotations

import asyncio
import gc
import sys

from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI

from benchmarks.guard_overhead import DELAY, QUESTION, N, Taken, served, taken
from snne_guard import SNNEGuard

CALLS = 1000  # guarded calls
QUARTERS = 4
AT_ONCE = 32  # requests in flight
LEAST = 0.9  # of the bare calls' throughput
MOST_GROWTH = 100  # objects more after the last quarter than after the first
REQUESTS = 2  # of a guarded call


async def bare(model: ChatOpenAI, calls: int) -> None:
    """Send the requests of the guarded calls, as many of both kinds in flight."""
    answer = model.bind(logprobs=True)
    sample = model.bind(logprobs=True, temperature=1.0, n=N - 1)
    half: RunnableConfig = {"max_concurrency": AT_ONCE // 2}
    questions: list[LanguageModelInput] = [QUESTION] * calls
    await asyncio.gather(answer.abatch(questions, half), sample.abatch(questions, half))


async def guarded(guard: SNNEGuard, calls: int) -> None:
    """Ask, and see that every answer was scored."""
    for message in await guard.abatch([QUESTION] * calls):
        used = message.response_metadata["snne_guard"]
        if used["n_used"] != N or used["reasons"] != ["no_threshold"]:
            raise AssertionError(used)


def alive() -> int:
    """Return how many objects are alive."""
    gc.collect()
    return len(gc.get_objects())


async def main() -> int:
    calls = CALLS // QUARTERS
    ours, theirs, objects = list[Taken](), list[Taken](), list[int]()
    with served("--delay", str(DELAY)) as model:
        guard = SNNEGuard(model, n=N, schedule="concurrent", max_concurrency=AT_ONCE)
        await guarded(guard, AT_ONCE)  # opens the connections, settles what comes back
        for _ in range(QUARTERS):
            theirs.append(await taken(bare(model, calls)))
            ours.append(await taken(guarded(guard, calls)))
            objects.append(alive())
    rate, bare_rate = (
        CALLS * REQUESTS / sum(quarter.time for quarter in quarters)
        for quarters in (ours, theirs)
    )
    share, growth = rate / bare_rate, objects[-1] - objects[0]
    cpu, bare_cpu = (
        Taken.least(quarters).cpu / calls * 1000 for quarters in (ours, theirs)
    )
    fast, flat = share >= LEAST, growth <= MOST_GROWTH
    print(f"{CALLS} guarded calls, {AT_ONCE} of {CALLS * REQUESTS} requests in flight")
    print(
        f"{share:>6.3f}  of the bare throughput: {rate:.0f} over {bare_rate:.0f} "
        f"requests a second; least {LEAST}  {'ok' if fast else 'MISSED'}"
    )
    print(
        f"{cpu / bare_cpu:>6.3f}  of the bare calls' CPU time: {cpu:.1f} over "
        f"{bare_cpu:.1f} ms a guarded call; no target"
    )
    print(
        f"{growth:>+6d}  objects after {CALLS} calls over those after {calls}; most "
        f"{MOST_GROWTH}  {'ok' if flat else 'MISSED'}"
    )
    return 0 if fast and flat else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
