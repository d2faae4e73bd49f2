"""A budget and a breaker in one guarded call: the answer stays, the rest is named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.assess import Assessor, AsyncSession, Brief, Judge, Session
from snne_guard.decision import Policy, Threshold
from snne_guard.sampling import Breaker, Budget, Draw, Reply, SamplingPlan
from snne_guard.sampling.breaker import Circuit
from snne_guard.sampling.budget import Ledger
from snne_guard.types import Assessment, Cost, Sample

PARIS = Sample(text="Paris")
EACH = Cost(calls=1, prompt_tokens=20, completion_tokens=10)  # of every request
WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])


class Provider:
    """Answers each request with one sample, and counts them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests, self.error = 0, error

    def send(self, _draw: Draw) -> Reply:
        self.requests += 1
        if self.error is not None:
            raise self.error
        return Reply(samples=(PARIS,), cost=EACH)


def call(assessor: Assessor, send: Callable[[Draw], Reply], way: str) -> Assessment:
    """Make one guarded call whose samples are drawn after the answer."""
    brief = Brief(characters=60, answer_first=True)
    if way == "tasks":
        return asyncio.run(_acall(assessor, brief, send))
    with Session(assessor, brief, send) as session:
        session.answer_started()
        session.answer_ended(PARIS, cost=EACH)
        return session.finish(PARIS)[0]


async def _acall(
    assessor: Assessor, brief: Brief, send: Callable[[Draw], Reply]
) -> Assessment:
    async def asend(draw: Draw) -> Reply:
        await asyncio.sleep(0)
        return send(draw)

    async with AsyncSession(assessor, brief, asend) as session:
        session.answer_started()
        session.answer_ended(PARIS, cost=EACH)
        return (await session.finish(PARIS))[0]


def assessor(
    *, n: int = 5, least: int = 2, budget: Budget | None = None, circuit: Circuit
) -> Assessor:
    policy = Policy(threshold=Threshold.fixed(0.5), min_samples=least)
    return Assessor(
        plan=SamplingPlan(n=n, max_attempts=1),
        judge=Judge(policy=policy),
        ledger=None if budget is None else Ledger(budget),
        circuit=circuit,
    )


@given(n=st.integers(2, 8), least=st.integers(2, 8), limit=st.integers(1, 300))
def test_what_a_budget_leaves_out_is_named_and_never_an_acceptance(
    n: int, least: int, limit: int
) -> None:
    least = min(least, n)
    provider = Provider()
    budget = Budget(tokens_per_call=limit)
    guarded = assessor(n=n, least=least, budget=budget, circuit=Circuit())
    found = call(guarded, provider.send, "threads")
    affordable = max(0, min(n - 1, limit // 30 - 1))
    drawn = affordable if 1 + affordable >= least else 0
    assert found.answer == PARIS
    assert provider.requests == drawn
    assert found.reasons == (() if drawn == n - 1 else ("over_budget",))
    assert found.decision == ("accept" if drawn else "flag")
    assert found.n_used == (1 + drawn if drawn else 0)
    taken = found.cost.prompt_tokens + found.cost.completion_tokens
    assert taken == 30 * (1 + drawn)
    assert taken <= max(30, limit)


@WAYS
def test_a_call_during_which_the_breaker_opens_says_both(way: str) -> None:
    provider = Provider(error=ConnectionResetError())
    circuit = Circuit(Breaker(failures=2, share=0.5))
    first = call(assessor(circuit=circuit), provider.send, way)
    assert first.decision == "flag"
    assert set(first.reasons) <= {"samples_failed", "samples_shed", "too_few_samples"}
    second = call(assessor(circuit=circuit), provider.send, way)
    assert (second.decision, second.reasons) == ("flag", ("samples_shed",))
    assert provider.requests <= 4
    assert second.answer == PARIS


@WAYS
def test_a_budget_that_is_used_up_does_not_take_the_place_of_the_probe(
    way: str,
) -> None:
    now = [0.0]
    circuit = Circuit(Breaker(failures=1, cooldown=5.0), clock=lambda: now[0])
    circuit.ended(ConnectionResetError())
    now[0] = 5.0
    poor = assessor(budget=Budget(tokens_per_call=30), circuit=circuit)
    assert call(poor, Provider().send, way).reasons == ("over_budget",)
    assert call(assessor(circuit=circuit), Provider().send, way).reasons == ()
