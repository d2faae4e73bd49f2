"""Budgets: what fits, what is learnt, and that no minute is knowingly overspent."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from snne_guard import Budget, ConfigurationError, Cost, Prices
from snne_guard.sampling.budget import Ledger, Tab
from snne_guard.sampling.estimates import Amount, Estimates
from tests.sampling.test_breaker import Clock

PRICES = Prices(prompt=1.0, completion=4.0, cached=0.5)


def answer(prompt: int = 20, completion: int = 10) -> Cost:
    return Cost(calls=1, prompt_tokens=prompt, completion_tokens=completion)


def known(ledger: Ledger, *, characters: int = 60, **options: Any) -> Tab:
    """Open a tab whose answer took 20 tokens read and 10 written."""
    tab = ledger.open(characters=characters, **options)
    tab.answered(answer())
    return tab


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "a Budget needs a limit: one of tokens_per_call"),
        ({"tokens_per_call": 0}, "tokens_per_call must be a whole number above 0"),
        ({"tokens_per_call": 10.5}, "got 10.5"),
        ({"tokens_per_minute": True}, "got True"),
        ({"tokens_per_minute": "9"}, "got '9'"),
        ({"money_per_call": -1}, "money_per_call must be a number above 0; got -1"),
        ({"money_per_minute": math.inf}, "got inf"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(
    options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Budget(**options)


@pytest.mark.parametrize("name", ["money_per_call", "money_per_minute"])
def test_a_budget_in_money_needs_prices(name: str) -> None:
    options: dict[str, Any] = {name: 1.0}
    budget = Budget(**options)
    with pytest.raises(ConfigurationError, match="needs prices"):
        Ledger(budget)
    assert Ledger(budget, PRICES).budget == budget


@pytest.mark.parametrize(
    ("limit", "samples"), [(29, 0), (59, 0), (60, 1), (149, 3), (150, 4), (999, 4)]
)
def test_a_call_draws_what_is_left_beside_its_answer(limit: int, samples: int) -> None:
    tab = known(Ledger(Budget(tokens_per_call=limit)))
    assert tab.samples(4, batch=1, least=1) == samples


def test_one_request_for_all_samples_reads_the_prompt_once() -> None:
    ledger = Ledger(Budget(tokens_per_call=30 + 20 + 40))
    tab = known(ledger)
    assert tab.samples(4, batch=4, least=1) == 2  # nobody has seen them come together
    tab.close(answer(20, 40), replies=4, batch=4)
    assert known(ledger).samples(4, batch=4, least=1) == 4
    assert known(ledger).samples(4, batch=2, least=1) == 2
    assert known(ledger).samples(4, batch=1, least=1) == 2


def test_what_comes_in_one_request_is_learnt_and_unlearnt() -> None:
    estimates = Estimates()

    def seen(calls: int, replies: int, batch: int) -> int:
        cost = Cost(calls=calls, prompt_tokens=9, completion_tokens=9)
        estimates.learn_samples(cost, characters=9, replies=replies, batch=batch)
        return estimates.together(9)

    assert estimates.together(9) == 1
    assert seen(1, 4, 9) == 4
    assert seen(1, 1, 9) == 4  # one was all that was asked for
    assert seen(3, 6, 2) == 2  # the provider gives no more than two now
    assert seen(0, 0, 9) == 2


def test_fewer_than_can_be_scored_are_not_drawn() -> None:
    tab = known(Ledger(Budget(tokens_per_call=90)))
    assert tab.samples(4, batch=1, least=3) == 0


def test_the_token_limit_of_a_sample_bounds_what_it_takes() -> None:
    ledger = Ledger(Budget(tokens_per_call=30 + 4 * 25))
    assert known(ledger).samples(4, batch=1, least=1) == 3
    assert known(ledger, max_tokens=5).samples(4, batch=1, least=1) == 4


def test_money_counts_what_a_cache_saves_once_that_is_seen() -> None:
    # An answer costs 20 + 40 millionths; so does a sample, until one was cached.
    ledger = Ledger(Budget(money_per_call=180e-6), PRICES)
    tab = known(ledger)
    assert tab.samples(4, batch=1, least=1) == 2
    drawn = Cost(calls=2, prompt_tokens=40, cached_tokens=40, completion_tokens=20)
    tab.close(drawn, replies=2)
    ledger = Ledger(Budget(money_per_call=210e-6), PRICES)
    ledger.estimates.learn_samples(drawn, characters=60, replies=2, batch=1)
    assert known(ledger).samples(4, batch=1, least=1) == 3  # 10 + 40 each


def test_the_first_call_waits_for_its_answer_and_the_next_does_not() -> None:
    ledger = Ledger(Budget(tokens_per_call=1000))
    first = ledger.open(characters=60)
    assert first.samples(4, batch=1, least=1) is None
    first.answered(answer())
    assert first.samples(4, batch=1, least=1) == 4
    assert ledger.open(characters=60).samples(4, batch=1, least=1) == 4
    # A prompt ten times as long reads ten times as much, answer included.
    assert ledger.open(characters=600).samples(4, batch=1, least=1) == 3


def test_a_provider_that_counts_nothing_is_held_to_the_length_of_the_texts() -> None:
    ledger = Ledger(Budget(tokens_per_call=100))
    tab = ledger.open(characters=60)
    tab.answered(Cost(calls=1, lower_bound=True), characters=30)
    # 60 / 3 + 30 / 3 tokens for the answer, and as many for each sample.
    assert tab.samples(4, batch=1, least=1) == 2
    tab.close(Cost(calls=2, lower_bound=True), replies=2)
    minute = Ledger(Budget(tokens_per_minute=100))
    tab = minute.open(characters=60)
    tab.answered(Cost(calls=1, lower_bound=True), characters=30)
    assert tab.samples(4, batch=1, least=1) == 2
    tab.close(Cost(calls=2, lower_bound=True), replies=2)
    assert known(minute).samples(4, batch=1, least=1) == 0


def test_an_answer_from_a_cache_of_the_clients_own_takes_nothing() -> None:
    ledger = Ledger(Budget(tokens_per_call=100))
    tab = ledger.open(characters=60)
    tab.answered(Cost(), characters=30)
    assert tab.samples(4, batch=1, least=1) == 3  # 30 tokens each by their length


def test_a_minute_is_shared_by_all_calls_and_passes() -> None:
    clock = Clock()
    ledger = Ledger(Budget(tokens_per_minute=200), clock=clock)
    first = known(ledger)
    assert first.samples(4, batch=1, least=1) == 4
    second = known(ledger)  # 150 are held, 30 more are its answer's
    assert second.samples(4, batch=1, least=1) == 0
    drawn = Cost(calls=4, prompt_tokens=80, completion_tokens=40)
    first.close(drawn, replies=4)
    second.close(Cost(), replies=0)
    clock.now += 59.9
    assert known(ledger).samples(4, batch=1, least=1) == 0
    clock.now += 0.1  # now two answers of open calls are all that counts
    assert known(ledger).samples(9, batch=1, least=1) == 4


def test_what_was_held_and_not_spent_is_there_for_the_next_call() -> None:
    ledger = Ledger(Budget(tokens_per_minute=200))
    first = known(ledger)
    assert first.samples(4, batch=1, least=1) == 4
    first.close(answer(20, 5), replies=1)  # the others failed
    assert known(ledger).samples(4, batch=1, least=1) == 3


@pytest.mark.parametrize("doubt", ["unfinished", "lower_bound"])
def test_what_was_perhaps_billed_stays_booked(doubt: str) -> None:
    ledger = Ledger(Budget(tokens_per_minute=200))
    first = known(ledger)
    assert first.samples(4, batch=1, least=1) == 4
    cost = Cost(prompt_tokens=20, completion_tokens=5, lower_bound=doubt[0] == "l")
    first.close(cost, replies=1, unfinished=doubt == "unfinished")
    first.close(Cost(), replies=0)  # only the first time counts
    assert known(ledger).samples(4, batch=1, least=1) == 0


def test_an_answer_that_failed_unbilled_gives_back_what_it_held() -> None:
    ledger = Ledger(Budget(tokens_per_minute=60))
    known(ledger).close(Cost(), replies=0)
    failed = ledger.open(characters=60)
    failed.answered(None)
    failed.close(Cost(), replies=0)
    cancelled = ledger.open(characters=60)
    cancelled.close(Cost(), replies=0, unfinished=True)
    assert ledger.open(characters=60).samples(1, batch=1, least=1) == 0
    assert ledger._minute.tokens == 30 + 0 + 30 + 30


def test_averages_follow_what_they_see() -> None:
    estimates = Estimates()
    assert estimates.prompt(10) is None
    assert estimates.cached(10) == 0
    estimates.learn(Cost(calls=1, completion_tokens=9), characters=9, replies=1)
    assert estimates.prompt(9) is None  # no count of the prompt: no count
    estimates.learn(answer(100, 10), characters=0, replies=0)
    assert estimates.prompt(2) == 200
    for _ in range(60):
        estimates.learn(answer(50, 40), characters=100, replies=2)
    assert (estimates.prompt(100), estimates.completion) == (51, 20)


def test_a_ledger_begins_anew_in_another_process() -> None:
    ledger = Ledger(Budget(tokens_per_minute=200, money_per_call=1), PRICES)
    known(ledger)
    copied = pickle.loads(pickle.dumps(ledger))  # noqa: S301 - our own
    assert (copied.budget, copied.prices) == (ledger.budget, PRICES)
    assert copied._minute == Amount()


def test_threads_together_hold_no_more_than_there_is() -> None:
    ledger = Ledger(Budget(tokens_per_minute=10_000))
    known(ledger).close(Cost(), replies=0)
    drawn: list[int] = []
    start = threading.Barrier(16)

    def call() -> None:
        start.wait()
        for _ in range(20):
            tab = ledger.open(characters=60)
            drawn.append(tab.samples(4, batch=1, least=1) or 0)

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # All answers are drawn, and the samples that fitted when they were asked for.
    assert ledger._minute.tokens == 30 + 30 * (320 + sum(drawn))
    assert 0 < 30 * sum(drawn) <= 10_000


counts = st.integers(0, 60)


class Minute(RuleBasedStateMachine):
    """A ledger beside a literal list of everything that was held and spent."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.ledger = Ledger(
            Budget(tokens_per_minute=400, money_per_minute=9e-4, tokens_per_call=200),
            PRICES,
            clock=self.clock,
        )
        self.open: list[Tab] = []
        self.spent: list[tuple[float, Amount]] = []

    def minute(self) -> Amount:
        held = [tab._answer + tab._samples for tab in self.open]
        recent = [amount for at, amount in self.spent if at > self.clock.now - 60]
        return sum(held + recent, Amount())

    @rule(characters=st.integers(1, 200), limit=st.none() | st.integers(1, 30))
    def begin(self, characters: int, limit: int | None) -> None:
        self.open.append(self.ledger.open(characters=characters, max_tokens=limit))

    @precondition(lambda self: self.open)
    @rule(prompt=counts, completion=counts, text=counts)
    def answered(self, prompt: int, completion: int, text: int) -> None:
        self.open[-1].answered(answer(prompt, completion), characters=text)

    @precondition(lambda self: self.open)
    @rule(wanted=st.integers(1, 9), batch=st.integers(1, 4), least=st.integers(1, 3))
    def draw(self, wanted: int, batch: int, least: int) -> None:
        tab, before = self.open[-1], self.minute()
        one, call = tab._one(), tab._answer + tab._samples
        together = self.ledger.estimates.together(batch)
        drawn = tab.samples(wanted, batch=batch, least=least)
        if one is None:
            assert drawn is None
            return
        fitting = [0]
        for count in range(least, wanted + 1):
            requests = -(-count // together)
            more = Amount(
                requests * one.prompt, requests * one.cached, count * one.completion
            )
            minute = before + more
            if (
                minute.tokens <= 400
                and PRICES.money(minute.cost()) <= 9e-4
                and (call + more).tokens <= 200
            ):
                fitting.append(count)
        assert drawn == max(fitting)

    @precondition(lambda self: self.open)
    @rule(took=st.tuples(counts, counts, st.integers(1, 4)), unfinished=st.booleans())
    def close(self, took: tuple[int, int, int], unfinished: bool) -> None:
        tab, replies = self.open.pop(0), took[2]
        cost = answer(*took[:2])
        tab.close(cost, replies=replies, batch=replies, unfinished=unfinished)
        self.spent.append((self.clock.now, tab._answer + tab._samples))

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def what_is_booked_is_what_was_held_and_spent(self) -> None:
        self.ledger.affords(Amount(), Amount())  # lets go of what is long ago
        assert self.ledger._minute == self.minute()


TestMinute = Minute.TestCase


@given(st.builds(Amount, counts, counts, counts), st.builds(Amount, counts, counts))
def test_amounts_add_up_exactly(first: Amount, second: Amount) -> None:
    assert first + second - second == first
    assert (first + second).tokens == first.tokens + second.tokens
    assert Amount.of(first.cost()) == first
