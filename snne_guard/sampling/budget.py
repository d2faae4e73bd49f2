"""Budgets: how many samples a guarded call can afford, and what was spent lately."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from snne_guard._forks import begin_in_forks
from snne_guard.errors import ConfigurationError
from snne_guard.sampling.estimates import Amount, Estimates, tokens_of
from snne_guard.sampling.prices import Prices
from snne_guard.types import Cost

__all__ = ["Budget", "Ledger", "Tab"]

MINUTE = 60.0
_TOKENS = ("tokens_per_call", "tokens_per_minute")
_MONEY = ("money_per_call", "money_per_minute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What guarded calls may spend; samples that would go over are not drawn.

    The answer is always drawn, and counts. What samples will take is estimated from
    the answer where it is there, else from earlier calls, so a call can end somewhat
    over; the minute then has that much less for the next one.

    Attributes:
        tokens_per_call: Tokens read and written in one guarded call.
        tokens_per_minute: The same in any minute, over all calls of the guard.
        money_per_call: Money for one guarded call, in the currency of ``prices``.
        money_per_minute: The same in any minute, over all calls of the guard.

    Raises:
        ConfigurationError: If a limit makes no sense, or none is given.
    """

    tokens_per_call: int | None = None
    tokens_per_minute: int | None = None
    money_per_call: float | None = None
    money_per_minute: float | None = None

    def __post_init__(self) -> None:
        limits = {name: getattr(self, name) for name in (*_TOKENS, *_MONEY)}
        for name, value in limits.items():
            whole = name in _TOKENS
            if value is not None and not _is_limit(value, whole=whole):
                expected = "a whole number" if whole else "a number"
                msg = f"Budget: {name} must be {expected} above 0; got {value!r}"
                raise ConfigurationError(msg)
        if all(value is None for value in limits.values()):
            msg = f"a Budget needs a limit: one of {', '.join((*_TOKENS, *_MONEY))}"
            raise ConfigurationError(msg)

    @property
    def in_money(self) -> bool:
        """Whether a limit is in money, so that prices are needed."""
        return any(getattr(self, name) is not None for name in _MONEY)


class Ledger:
    """What a guard's calls have spent in the last minute and are about to spend.

    It is shared by all calls of a guard and of those made from it, threads and event
    loops alike; nothing waits in it.

    Args:
        budget: The limits.
        prices: What tokens cost; needed for limits in money.
        clock: Seconds that only ever grow.

    Raises:
        ConfigurationError: If a limit is in money and there are no prices.

    Example:
        >>> ledger = Ledger(Budget(tokens_per_call=100))
        >>> tab = ledger.open(characters=60)
        >>> tab.samples(4, batch=1, least=1) is None  # before anything is known
        True
        >>> tab.answered(Cost(calls=1, prompt_tokens=20, completion_tokens=10))
        >>> tab.samples(4, batch=1, least=1)  # 30 tokens for the answer and 30 each
        2
    """

    def __init__(
        self,
        budget: Budget,
        prices: Prices | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if budget.in_money and prices is None:
            msg = "a budget in money needs prices: SNNEGuard(prices=Prices(...))"
            raise ConfigurationError(msg)
        self.budget, self.prices = budget, prices
        self.estimates = Estimates()
        self._clock = clock
        begin_in_forks(self)

    def begin(self) -> None:
        """Know of nothing that was spent; what replies take on average is kept."""
        self.lock = threading.Lock()
        self._spent: deque[tuple[float, Amount]] = deque()
        self._minute = Amount()  # what was spent in it, and what open tabs hold

    def __reduce__(self) -> tuple[type[Ledger], tuple[Budget, Prices | None]]:
        """Start anew in another process; a lock cannot travel."""
        return (Ledger, (self.budget, self.prices))

    def open(self, *, characters: int, max_tokens: int | None = None) -> Tab:
        """Begin a guarded call.

        Args:
            characters: Length of the prompt.
            max_tokens: Token limit of a sample, None if there is none.
        """
        return Tab(self, characters=characters, max_tokens=max_tokens)

    def held(self, change: Amount) -> None:
        """Note that open tabs hold so much more, or less; the lock is held."""
        self._minute += change

    def spent(self, amount: Amount) -> None:
        """Note that what a tab held was spent now; the lock is held."""
        self._spent.append((self._clock(), amount))

    def affords(self, call: Amount, more: Amount) -> bool:
        """Return whether a call may spend so much more; the lock is held."""
        now, budget = self._clock(), self.budget
        while self._spent and self._spent[0][0] <= now - MINUTE:
            self._minute -= self._spent.popleft()[1]
        return self._within(
            call + more, budget.tokens_per_call, budget.money_per_call
        ) and self._within(
            self._minute + more, budget.tokens_per_minute, budget.money_per_minute
        )

    def _within(self, amount: Amount, tokens: int | None, money: float | None) -> bool:
        if tokens is not None and amount.tokens > tokens:
            return False
        if money is None or self.prices is None:
            return True
        return self.prices.money(amount.cost()) <= money


class Tab:
    """The tab of one guarded call: what it holds of the budget until it is closed.

    Args:
        ledger: Where it is booked.
        characters: Length of the prompt.
        max_tokens: Token limit of a sample, None if there is none.
    """

    def __init__(
        self, ledger: Ledger, *, characters: int, max_tokens: int | None
    ) -> None:
        self._ledger, self._characters = ledger, characters
        self._max_tokens = max_tokens
        self._answer = self._samples = Amount()
        self._known: Amount | None = None
        self._closed = False
        with ledger.lock:
            estimates = ledger.estimates
            prompt, completion = estimates.prompt(characters), estimates.completion
            if prompt is not None and completion is not None:
                self._hold(answer=Amount(prompt, 0, completion))

    def answered(self, cost: Cost | None, *, characters: int = 0) -> None:
        """Note what the answer took.

        Args:
            cost: What the provider counted, None where there is no answer and nothing
                was billed.
            characters: Length of the answer, for providers that do not count.
        """
        with self._ledger.lock:
            if cost is None:
                self._hold(answer=Amount())
                return
            estimates = self._ledger.estimates
            estimates.learn(cost, characters=self._characters, replies=1)
            amount = Amount.of(cost)
            if not amount.prompt:
                prompt = estimates.prompt(self._characters)
                written = max(amount.completion, tokens_of(characters))
                amount = Amount(prompt or tokens_of(self._characters), 0, written)
            self._known = amount
            # One from a cache of the client's own took nothing, but tells the lengths.
            self._hold(answer=amount if cost.calls else Amount())

    def samples(self, wanted: int, *, batch: int, least: int) -> int | None:
        """Return how many samples the call can afford, and hold what they will take.

        Args:
            wanted: Samples that it wants.
            batch: Replies that are asked for in one request, which reads the prompt
                once; it is counted on only where they were seen to come.
            least: Samples without which nothing can be scored; fewer are none.

        Returns:
            The number, 0 where it is below ``least``; None where nothing is known yet
            of what a request takes, so that the answer is to be waited for.
        """
        with self._ledger.lock:
            one = self._one()
            if one is None:
                return None
            together = self._ledger.estimates.together(batch)
            for count in range(wanted, least - 1, -1):
                requests = math.ceil(count / together)
                more = Amount(
                    requests * one.prompt, requests * one.cached, count * one.completion
                )
                if self._ledger.affords(self._answer + self._samples, more):
                    self._hold(samples=self._samples + more)
                    return count
            return 0

    def close(
        self, samples: Cost, *, replies: int, batch: int = 1, unfinished: bool = False
    ) -> None:
        """Book what the call took, instead of what it was thought to take.

        Args:
            samples: What was counted of its samples.
            replies: Samples that came.
            batch: Replies that the provider may give in one request, by what is known.
            unfinished: Whether more was in flight, and perhaps billed.
        """
        with self._ledger.lock:
            if self._closed:
                return
            self._closed = True
            self._ledger.estimates.learn_samples(
                samples, characters=self._characters, replies=replies, batch=batch
            )
            amount = Amount.of(samples)
            doubtful = unfinished or samples.lower_bound
            if not doubtful or amount.tokens > self._samples.tokens:
                self._hold(samples=amount)
            self._ledger.spent(self._answer + self._samples)

    def _one(self) -> Amount | None:
        """Return what one request for one sample takes, None if unknown."""
        estimates, known = self._ledger.estimates, self._known
        prompt = known.prompt if known else estimates.prompt(self._characters)
        written = [known.completion] if known else []
        if estimates.completion is not None:
            written.append(estimates.completion)
        if prompt is None or not written:
            return None
        completion = max(written)
        if self._max_tokens is not None:
            completion = min(completion, self._max_tokens)
        return Amount(prompt, estimates.cached(prompt), completion)

    def _hold(
        self, *, answer: Amount | None = None, samples: Amount | None = None
    ) -> None:
        before = self._answer + self._samples
        self._answer = self._answer if answer is None else answer
        self._samples = self._samples if samples is None else samples
        self._ledger.held(self._answer + self._samples - before)


def _is_limit(value: object, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if whole and not isinstance(value, int):
        return False
    return math.isfinite(value) and value > 0
