"""The breaker: when samples are shed, who may probe, and what opens it by mistake."""

from __future__ import annotations

import asyncio
import logging
import pickle
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import Breaker, ConfigurationError, ModelCancelledError
from snne_guard.sampling.breaker import BREAKER, Circuit

SMALL = Breaker(failures=3, share=0.5, window=10.0, cooldown=5.0)
BUSY = TimeoutError()


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(breaker: Breaker = SMALL) -> tuple[Circuit, Clock]:
    clock = Clock()
    circuit = Circuit(breaker, clock=clock)
    for _ in range(breaker.failures):
        circuit.ended(BUSY)
    assert not circuit.admits("any")
    return circuit, clock


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"failures": 0}, "failures must be a whole number of at least 1; got 0"),
        ({"failures": 2.5}, "got 2.5"),
        ({"failures": True}, "got True"),
        ({"share": 0}, r"share must be in \(0, 1\]; got 0"),
        ({"share": 1.1}, "got 1.1"),
        ({"share": "half"}, "got 'half'"),
        ({"window": 0}, "window must be seconds above 0; got 0"),
        ({"window": float("nan")}, "got nan"),
        ({"cooldown": -1}, "cooldown must be seconds above 0; got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Breaker(**options)


def test_it_opens_when_the_provider_fails_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    circuit = Circuit(SMALL)
    for _ in range(2):
        circuit.ended(BUSY)
        assert circuit.admits("a")
    with caplog.at_level(logging.WARNING):
        circuit.ended(BUSY, answer=True)  # answers count like samples
    assert not circuit.admits("a")
    assert "3 of 3 requests in 10 s" in caplog.text


def test_none_never_opens() -> None:
    circuit = Circuit(None)
    for _ in range(1000):
        circuit.ended(BUSY)
    assert circuit.admits("a")


@pytest.mark.parametrize(
    "error", [None, ValueError("bad"), PermissionError(), asyncio.CancelledError()]
)
def test_what_no_retry_would_mend_is_no_failure(error: BaseException | None) -> None:
    circuit = Circuit(SMALL)
    for _ in range(100):
        circuit.ended(error)
    assert circuit.admits("a")


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), ModelCancelledError("by itself")]
)
def test_what_a_client_cancelled_is_no_success_either(error: BaseException) -> None:
    circuit = Circuit(SMALL)
    for _ in range(100):
        circuit.ended(error)
    for _ in range(SMALL.failures):
        circuit.ended(BUSY)
    assert not circuit.admits("a")


def test_failures_that_are_long_ago_do_not_count() -> None:
    clock = Clock()
    circuit = Circuit(SMALL, clock=clock)
    for _ in range(50):
        circuit.ended(BUSY)
        circuit.ended(BUSY)
        clock.now += SMALL.window
    assert circuit.admits("a")


def test_after_the_cooldown_one_call_probes_with_all_of_its_requests() -> None:
    circuit, clock = opened()
    clock.now += SMALL.cooldown - 0.001
    assert not circuit.admits("first")
    clock.now += 0.001
    assert circuit.admits("first")
    assert not circuit.admits("second")
    assert circuit.admits("first")
    circuit.ended(answer=True)  # tells nothing about the load of samples
    assert not circuit.admits("second")
    circuit.ended()
    assert circuit.admits("second")


def test_a_probe_that_fails_begins_the_cooldown_anew() -> None:
    circuit, clock = opened()
    clock.now += SMALL.cooldown
    assert circuit.admits("first")
    circuit.ended(BUSY)
    assert not circuit.admits("first")
    clock.now += SMALL.cooldown
    assert circuit.admits("second")


def test_a_probe_of_which_nothing_is_heard_does_not_block_the_next() -> None:
    circuit, clock = opened()
    clock.now += SMALL.cooldown
    assert circuit.admits("lost")
    clock.now += SMALL.cooldown
    assert circuit.admits("next")
    assert not circuit.admits("lost")


def test_what_was_in_flight_when_it_opened_changes_nothing() -> None:
    circuit, clock = opened()
    clock.now += SMALL.cooldown / 2
    circuit.ended()
    circuit.ended(BUSY)
    assert not circuit.admits("a")
    clock.now += SMALL.cooldown / 2
    assert circuit.admits("a")


def test_a_refused_probe_shows_that_the_provider_is_there() -> None:
    circuit, clock = opened()
    clock.now += SMALL.cooldown
    assert circuit.admits("a")
    circuit.ended(ValueError("no such model"))
    assert circuit.admits("b")


def test_it_begins_closed_in_another_process() -> None:
    circuit, _ = opened()
    copied = pickle.loads(pickle.dumps(circuit))  # noqa: S301 - our own
    assert copied.breaker == SMALL
    assert copied.admits("a")


def test_of_a_burst_the_failures_come_back_first_and_do_not_open_it() -> None:
    circuit = Circuit(BREAKER)
    for _ in range(1000):
        circuit.began()
    for _ in range(200):
        circuit.ended(BUSY)
    assert circuit.admits("a")
    for _ in range(400):
        circuit.ended(BUSY)
    assert not circuit.admits("a")


def test_it_holds_no_more_the_more_requests_there_are() -> None:
    clock = Clock()
    circuit = Circuit(BREAKER, clock=clock)
    for _ in range(5_000):
        clock.now += 0.01
        circuit.began()
        circuit.ended()
    assert len(circuit._window._counts) <= 51


# Either at the same moment or more than a slot of the window later: then the slots
# count exactly.
waits = st.just(0.0) | st.floats(0.21, 4)
events = st.lists(
    st.tuples(waits, st.sampled_from(["begun", "answered", "failed"])), max_size=60
)


@given(events=events, failures=st.integers(1, 6), share=st.sampled_from([0.3, 0.5, 1]))
def test_it_opens_exactly_when_a_count_of_the_window_says_so(
    events: Sequence[tuple[float, str]], failures: int, share: float
) -> None:
    breaker = Breaker(failures=failures, share=share, window=10.0, cooldown=1e9)
    clock = Clock()
    circuit = Circuit(breaker, clock=clock)
    seen: list[tuple[float, str]] = []
    expected = True
    for wait, event in events:
        clock.now += wait
        if event == "begun":
            circuit.began()
        else:
            circuit.ended(BUSY if event == "failed" else None)
        seen.append((clock.now, event))
        recent = [event for at, event in seen if at > clock.now - 10.0]
        failed, begun = recent.count("failed"), recent.count("begun")
        total = max(begun, failed + recent.count("answered"))
        if event == "failed" and failed >= max(failures, share * total):
            expected = False
        assert circuit.admits("a") is expected


@pytest.mark.parametrize("in_a_window", [20, 33, 50, 400])
def test_a_fifth_of_failures_at_random_does_not_open_it(in_a_window: int) -> None:
    clock = Clock()
    circuit = Circuit(BREAKER, clock=clock)
    draws = random.Random(in_a_window)  # noqa: S311 - no secret
    for _ in range(6_000):  # what 1,000 calls of n = 5 send, retries included
        clock.now += draws.expovariate(in_a_window / BREAKER.window)
        circuit.began()
        circuit.ended(BUSY if draws.random() < 0.2 else None)
        assert circuit.admits("a")


def test_an_outage_opens_it_after_as_many_requests_as_it_says() -> None:
    circuit = Circuit(BREAKER)
    for _ in range(BREAKER.failures):
        assert circuit.admits("a")
        circuit.ended(BUSY)
    assert not circuit.admits("a")
