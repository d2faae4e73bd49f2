"""Whatever a provider does, nothing billed is asked for again, and it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from snne_guard.sampling import Collector, Draw, Reply
from snne_guard.types import Cost, Sample


def replies(*texts: str, prompt_tokens: int = 0, completion_tokens: int = 0) -> Reply:
    samples = tuple(Sample(text=text) for text in texts)
    cost = Cost(
        calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens
    )
    return Reply(samples=samples, cost=cost)


def texts(collector: Collector) -> list[str]:
    return [sample.text for sample in collector.samples]


@pytest.mark.parametrize(
    ("n_samples", "batch", "expected"),
    [
        (4, 4, [(0, 4)]),
        (4, 9, [(0, 4)]),
        (4, 3, [(0, 3), (3, 1)]),
        (4, 1, [(0, 1), (1, 1), (2, 1), (3, 1)]),
        (4, 0, [(0, 1), (1, 1), (2, 1), (3, 1)]),
        (1, 5, [(0, 1)]),
        (0, 5, []),
    ],
)
def test_the_first_requests_cover_the_set_once(
    n_samples: int, batch: int, expected: list[tuple[int, int]]
) -> None:
    draws = Collector(n_samples, batch=batch).first()
    assert [(draw.index, draw.n) for draw in draws] == expected


def test_a_provider_that_ignores_n_is_asked_for_the_rest_one_by_one() -> None:
    collector = Collector(4, batch=4)
    (draw,) = collector.first()
    follow = collector.arrived(draw, replies("a"))
    assert [(draw.index, draw.n) for draw in follow] == [(1, 1), (2, 1), (3, 1)]
    assert collector.batch == 1


def test_a_provider_that_caps_n_is_asked_for_the_rest_in_that_size() -> None:
    collector = Collector(5, batch=5)
    (draw,) = collector.first()
    follow = collector.arrived(draw, replies("a", "b"))
    assert [(draw.index, draw.n) for draw in follow] == [(2, 2), (4, 1)]
    assert collector.arrived(follow[1], replies("e")) == []
    assert collector.arrived(follow[0], replies("c", "d")) == []
    assert texts(collector) == ["a", "b", "c", "d", "e"]
    assert collector.errors == []


def test_a_provider_that_rejects_n_is_asked_for_half() -> None:
    collector = Collector(5, batch=5)
    (draw,) = collector.first()
    follow = collector.failed(draw, ValueError("n"), rejects_n=True)
    assert [(draw.index, draw.n) for draw in follow] == [(0, 2), (2, 2), (4, 1)]
    follow = collector.failed(follow[1], ValueError("n"), rejects_n=True)
    assert [(draw.index, draw.n) for draw in follow] == [(2, 1), (3, 1)]
    assert collector.errors == []


def test_a_rejection_of_a_single_reply_is_final() -> None:
    collector = Collector(1)
    error = ValueError("no")
    assert collector.failed(Draw(index=0, n=1), error, rejects_n=True) == []
    assert collector.errors == [error]


def test_a_failure_for_another_reason_is_final() -> None:
    collector = Collector(4, batch=4)
    error = OSError("gone")
    assert collector.failed(collector.first()[0], error) == []
    assert collector.errors == [error]
    assert collector.batch == 4


def test_more_than_asked_for_is_left_out() -> None:
    collector = Collector(2, batch=2)
    assert collector.arrived(collector.first()[0], replies("a", "b", "c")) == []
    assert texts(collector) == ["a", "b"]


def test_a_reply_with_nothing_in_it_is_a_failure_and_its_cost_counts() -> None:
    collector = Collector(3, batch=3)
    assert collector.arrived(collector.first()[0], replies(prompt_tokens=7)) == []
    (error,) = collector.errors
    assert str(error) == "expected 3 replies in one request, got none"
    assert collector.cost == Cost(calls=1, prompt_tokens=7)


def test_samples_stand_in_the_order_of_the_requests() -> None:
    collector = Collector(3)
    first, second, third = collector.first()
    collector.arrived(third, replies("c"))
    collector.arrived(first, replies("a"))
    assert texts(collector) == ["a", "c"]
    collector.arrived(second, replies("b"))
    assert texts(collector) == ["a", "b", "c"]


def test_costs_are_summed_once() -> None:
    collector = Collector(2)
    first, second = collector.first()
    for _attempt in range(3):
        collector.sent()
    collector.arrived(first, replies("a", prompt_tokens=5, completion_tokens=2))
    collector.arrived(second, replies("b", prompt_tokens=5, completion_tokens=3))
    assert collector.cost == Cost(
        calls=2, attempts=3, prompt_tokens=10, completion_tokens=5
    )


class AnyProvider(RuleBasedStateMachine):
    """A provider that does anything, and what must hold whatever it does."""

    draws: Bundle[Draw] = Bundle("draws")

    @initialize(target=draws, n_samples=st.integers(0, 12), batch=st.integers(0, 12))
    def begin(self, n_samples: int, batch: int) -> MultipleResults[Draw]:
        self.collector = Collector(n_samples, batch=batch)
        self.wanted = set(range(n_samples))
        self.billed: dict[int, str] = {}
        self.calls = self.sent = self.failures = self.given = 0
        return self._open(self.collector.first())

    def _open(self, draws: list[Draw]) -> MultipleResults[Draw]:
        for draw in draws:
            assert 1 <= draw.n <= self.collector.batch
            asked = set(range(draw.index, draw.index + draw.n))
            assert asked <= self.wanted, "asked again for what came or failed for good"
            self.wanted -= asked
        return multiple(*draws)

    @rule(target=draws, draw=consumes(draws), got=st.integers(0, 15))
    def answer(self, draw: Draw, got: int) -> MultipleResults[Draw]:
        given = [f"reply {self.given + offset}" for offset in range(got)]
        self.given += got
        self.calls += 1
        batch = self.collector.batch
        follow = self.collector.arrived(draw, replies(*given, completion_tokens=got))
        used = given[: draw.n]
        self.billed |= {draw.index + i: text for i, text in enumerate(used)}
        if used:
            self.wanted |= set(range(draw.index + len(used), draw.index + draw.n))
        else:
            self.failures += 1
        assert self.collector.batch <= batch
        assert sum(new.n for new in follow) == (draw.n - len(used) if used else 0)
        return self._open(follow)

    @rule(target=draws, draw=consumes(draws), rejects_n=st.booleans())
    def fail(self, draw: Draw, rejects_n: bool) -> MultipleResults[Draw]:
        follow = self.collector.failed(draw, OSError("no"), rejects_n=rejects_n)
        if rejects_n and draw.n > 1:
            self.wanted |= set(range(draw.index, draw.index + draw.n))
            assert max(new.n for new in follow) <= draw.n // 2
            assert sum(new.n for new in follow) == draw.n
        else:
            self.failures += 1
            assert follow == []
        return self._open(follow)

    @rule()
    @precondition(lambda self: hasattr(self, "collector"))
    def send(self) -> None:
        self.sent += 1
        self.collector.sent()

    @invariant()
    def nothing_billed_is_lost_or_counted_twice(self) -> None:
        if not hasattr(self, "collector"):
            return
        assert texts(self.collector) == [self.billed[i] for i in sorted(self.billed)]
        assert self.collector.cost == Cost(
            calls=self.calls, attempts=self.sent, completion_tokens=self.given
        )
        assert len(self.collector.errors) == self.failures


TestAnyProvider = AnyProvider.TestCase


@given(
    n_samples=st.integers(1, 40),
    batch=st.integers(1, 40),
    cap=st.integers(1, 12),
    rejects=st.booleans(),
)
def test_a_provider_with_a_cap_gives_every_sample_exactly_once(
    n_samples: int,
    batch: int,
    cap: int,
    rejects: bool,
) -> None:
    collector = Collector(n_samples, batch=batch)
    open_draws, billed, requests = collector.first(), 0, 0
    while open_draws:
        draw = open_draws.pop()
        requests += 1
        if rejects and draw.n > cap:
            open_draws += collector.failed(draw, ValueError(), rejects_n=True)
            continue
        got = min(draw.n, cap)
        billed += got
        open_draws += collector.arrived(draw, replies(*["x"] * got))
    assert billed == n_samples == len(collector.samples)
    assert collector.errors == []
    assert requests < 2 * n_samples


def test_a_limit_cuts_the_rounds_that_go_beyond_it() -> None:
    collector = Collector(9, batch=9, rounds=(2, 4, 9))
    collector.limit(3)
    assert (collector.n_samples, collector.first()) == (3, [Draw(index=0, n=2)])
    assert collector.next_round() == [Draw(index=2, n=1)]
    assert collector.complete
