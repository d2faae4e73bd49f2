"""Which requests to send next, given what came back: no threads, no provider."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from snne_guard.types import Cost, Sample

__all__ = ["Collector", "Draw", "Reply", "count_by", "one_more_request"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One request for ``n`` further replies.

    Attributes:
        index: Position of its first reply among the samples; a seed is offset by it.
        n: Replies asked for.
    """

    index: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one request brought.

    Attributes:
        samples: One for each reply, in the provider's order.
        cost: What it took, counted once for the whole request.
    """

    samples: tuple[Sample, ...]
    cost: Cost = field(default_factory=Cost)


_NOTHING, _SENT, _LOST = Cost(), Cost(attempts=1), Cost(lower_bound=True)


class Collector:
    """Gathers ``n_samples`` replies, never asking again for what was billed.

    It belongs to one guarded call. Whoever drives it sends what ``first``,
    ``arrived`` and ``failed`` return, one call at a time.

    Args:
        n_samples: Replies wanted in all.
        batch: Replies that the provider is believed to give in one request.
        rounds: Replies wanted after each round, the last ``n_samples``; one round if
            there are none.

    Attributes:
        batch: The same, corrected by what the provider really did.
        asked: Replies that the rounds so far were to bring.
        rounds: Rounds so far.
        errors: The exceptions of the requests that failed for good.
        cost: What all requests so far took.

    Example:
        >>> collector = Collector(4, batch=4)
        >>> collector.first()
        [Draw(index=0, n=4)]
        >>> one = Reply(samples=(Sample(text="Paris"),))
        >>> collector.arrived(Draw(index=0, n=4), one)  # the provider ignores n
        [Draw(index=1, n=1), Draw(index=2, n=1), Draw(index=3, n=1)]
    """

    def __init__(
        self, n_samples: int, *, batch: int = 1, rounds: Sequence[int] = ()
    ) -> None:
        self.n_samples = n_samples
        self.batch = max(1, batch)
        self.asked = 0
        self.rounds = 0
        self._ahead = deque(rounds or (n_samples,))
        self.errors: list[BaseException] = []
        self.cost = _NOTHING
        self._arrived: dict[int, Sample] = {}
        self._held: dict[int, int] = {}

    @property
    def samples(self) -> tuple[Sample, ...]:
        """What has arrived so far, in the order of the requests."""
        return tuple(self._arrived[index] for index in sorted(self._arrived))

    def sent(self) -> None:
        """Count a request that goes out, whatever comes of it."""
        self.cost += _SENT

    def lost(self) -> None:
        """Note that something was perhaps billed of which no count will come."""
        self.cost += _LOST

    def total(self, answer: Cost, *, seconds: float, cut: bool, saved: int = 0) -> Cost:
        """Return what the answer and all samples took.

        Args:
            answer: What the answer took.
            seconds: Since the call began.
            cut: Whether something was in flight at the end: perhaps it was billed, and
                nobody will know.
            saved: Samples that were not drawn, the decision being settled.
        """
        cost = answer + self.cost
        return replace(
            cost,
            seconds=seconds,
            rounds=self.rounds,
            samples_saved=saved,
            lower_bound=cost.lower_bound or cut,
        )

    def limit(self, n_samples: int) -> None:
        """Want fewer replies than was planned; only before the first round."""
        self.n_samples = n_samples
        rounds = {min(replies, n_samples) for replies in self._ahead}
        self._ahead = deque(sorted(rounds))

    def first(self) -> list[Draw]:
        """Return the requests to begin with."""
        return self.next_round()

    @property
    def complete(self) -> bool:
        """Whether no further round is planned."""
        return not self._ahead

    def next_round(self) -> list[Draw]:
        """Return the requests of the next round, of which there must be one."""
        begun, self.asked = self.asked, self._ahead.popleft()
        self.rounds += 1
        return self._chunks(begun, self.asked - begun)

    def arrived(self, draw: Draw, reply: Reply) -> list[Draw]:
        """Take in a reply and return the requests that top it up."""
        self.cost += reply.cost
        got = reply.samples[: draw.n]
        for offset, sample in enumerate(got):
            self._arrived[draw.index + offset] = sample
        waiting = self._chunks(draw.index + 1, self._held.pop(draw.index, 0))
        missing = draw.n - len(got)
        if not missing:
            return waiting
        if not got:
            # Asking once more would most likely bring, and cost, the same.
            self.errors.append(_NoChoicesError(draw.n))
            return []
        self.batch = min(self.batch, len(got))
        return self._chunks(draw.index + len(got), missing)

    def failed(
        self, draw: Draw, error: BaseException, *, rejects_n: bool | None = False
    ) -> list[Draw]:
        """Take in a failure and return the smaller requests that may still work.

        Args:
            draw: The request that failed.
            error: Why.
            rejects_n: Whether it was for the number of replies; None where that is
                not known: then one reply is asked for, and the others only after it.
        """
        if draw.n > 1 and rejects_n is not False:
            self.batch = min(self.batch, draw.n // 2)
            if rejects_n:
                return self._chunks(draw.index, draw.n)
            self._held[draw.index] = draw.n - 1
            return [Draw(index=draw.index, n=1)]
        self._held.pop(draw.index, None)
        self.errors.append(error)
        return []

    def _chunks(self, index: int, n: int) -> list[Draw]:
        return [
            Draw(index=start, n=min(self.batch, index + n - start))
            for start in range(index, index + n, self.batch)
        ]


_counter: ContextVar[Callable[[], object]] = ContextVar(
    "snne_guard_counter", default=Cost
)


def count_by(count: Callable[[], object]) -> None:
    """Set who counts the further requests that are sent in this context."""
    _counter.set(count)


def one_more_request() -> None:
    """Count a further request for the same draw, just before it goes out.

    Raises:
        Exception: What the counter raises where nothing may be sent any more.
    """
    _counter.get()()


class _NoChoicesError(Exception):
    """The provider answered with no reply in it."""

    def __init__(self, n: int) -> None:
        super().__init__(f"expected {n} replies in one request, got none")
