"""Observers that raise, hang, crawl or vanish cost a call next to nothing."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import pickle
import queue
import threading
from typing import Any

import pytest

from snne_guard.assess import ObserverHub, observe
from snne_guard.types import Assessment, Sample, SampleEvent

pytestmark = pytest.mark.usefixtures("brief_observers")

PRIVATE = "the capital is Paris"
ASSESSMENT = Assessment(id="an id", answer=Sample(text=PRIVATE), question=PRIVATE)


def event(index: int = 0) -> SampleEvent:
    return SampleEvent(assessment_id="an id", role="sample", index=index, n=1)


CURRENT = contextvars.ContextVar("CURRENT", default="none")


class Keeper:
    """Keeps what it is told, and the threads that it is told in."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.threads: set[str] = set()
        self.contexts: list[str] = []

    def on_sample_start(self, found: SampleEvent) -> None:
        self._keep("start", found)

    def on_sample_end(self, found: SampleEvent) -> None:
        self._keep("end", found)

    def on_assessment(self, found: Assessment) -> None:
        self._keep("assessment", found)

    def _keep(self, name: str, found: Any) -> None:
        self.told.append((name, found))
        self.threads.add(threading.current_thread().name)
        self.contexts.append(CURRENT.get())


class AsyncKeeper(Keeper):
    """Does the same as coroutines."""

    async def on_sample_start(self, found: SampleEvent) -> None:  # type: ignore[override]  # the async form
        await asyncio.sleep(0)
        self._keep("start", found)

    async def on_sample_end(self, found: SampleEvent) -> None:  # type: ignore[override]  # the async form
        await asyncio.sleep(0)
        self._keep("end", found)

    async def on_assessment(self, found: Assessment) -> None:  # type: ignore[override]  # the async form
        await asyncio.sleep(0)
        self._keep("assessment", found)


class Raising:
    """Raises whatever it is told to, plain or as a coroutine."""

    def __init__(self, error: BaseException, *, later: bool = False) -> None:
        self.error, self.later = error, later

    def on_assessment(self, _found: Assessment) -> Any:
        if self.later:
            return self._fail()
        raise self.error

    async def _fail(self) -> None:
        await asyncio.sleep(0)
        raise self.error


class Hanging:
    """Hangs until the test lets go of it."""

    def __init__(self) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()
        self.told: list[str] = []

    def on_assessment(self, found: Assessment) -> None:
        self.begun.set()
        assert self.gate.wait(60)
        self.told.append(found.id)


def join_threads() -> None:
    """Wait until every observer's thread has ended."""
    for thread in threading.enumerate():
        if thread.name == "snne-guard-observer":
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize("keeper", [Keeper(), AsyncKeeper()])
def test_every_event_is_told_in_order_in_a_thread_of_its_own(keeper: Keeper) -> None:
    hub = ObserverHub([keeper])
    expected: list[tuple[str, Any]] = []
    for index in range(50):
        hub.sample_started(event(index))
        hub.sample_ended(event(index))
        expected += [("start", event(index)), ("end", event(index))]
    hub.assessed(ASSESSMENT)
    assert keeper.told == [*expected, ("assessment", ASSESSMENT)]
    assert keeper.threads == {"snne-guard-observer"}
    assert hub.failures == 0


@pytest.mark.parametrize("keeper", [Keeper(), AsyncKeeper()])
def test_each_event_is_told_in_the_context_of_its_call(keeper: Keeper) -> None:
    hub = ObserverHub([keeper])
    token = CURRENT.set("the span of the call")
    hub.sample_started(event())
    CURRENT.reset(token)
    hub.assessed(ASSESSMENT)
    assert keeper.contexts == ["the span of the call", "none"]


async def test_the_event_loop_hands_over_too() -> None:
    keepers = [Keeper(), AsyncKeeper()]
    await ObserverHub(keepers).aassessed(ASSESSMENT)
    assert [keeper.told for keeper in keepers] == [[("assessment", ASSESSMENT)]] * 2


async def test_the_event_loop_turns_while_an_observer_is_waited_for() -> None:
    hanging = Hanging()
    hub = ObserverHub([hanging])
    handing = asyncio.create_task(hub.aassessed(ASSESSMENT))
    while not hanging.begun.is_set():  # noqa: ASYNC110 - set by a thread
        await asyncio.sleep(0.001)
    assert not handing.done()
    hanging.gate.set()
    await asyncio.wait_for(handing, 30)
    assert hanging.told == ["an id"]


async def test_without_observers_there_is_nothing_to_do() -> None:
    before = set(threading.enumerate())
    hub = ObserverHub()
    hub.sample_started(event())
    hub.assessed(ASSESSMENT)
    await hub.aassessed(ASSESSMENT)
    assert hub.failures == 0
    assert set(threading.enumerate()) <= before


def test_an_observer_may_leave_out_what_it_does_not_want() -> None:
    class Half:
        def __init__(self) -> None:
            self.ids: list[str] = []

        def on_assessment(self, found: Assessment) -> None:
            self.ids.append(found.id)

    half = Half()
    hub = ObserverHub([half, object()])
    hub.sample_started(event())
    hub.sample_ended(event())
    hub.assessed(ASSESSMENT)
    assert (half.ids, hub.failures) == (["an id"], 0)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(PRIVATE),
        asyncio.CancelledError(PRIVATE),
        SystemExit(PRIVATE),
        KeyboardInterrupt(PRIVATE),
    ],
)
def test_an_observer_that_raises_is_counted_and_told_of_the_next_event(
    error: BaseException, caplog: pytest.LogCaptureFixture, *, later: bool
) -> None:
    hub = ObserverHub([Raising(error, later=later), keeper := Keeper()])
    with caplog.at_level(logging.DEBUG, logger="snne_guard"):
        hub.assessed(ASSESSMENT)
        hub.assessed(ASSESSMENT)
    assert hub.failures == 2
    assert len(keeper.told) == 2
    kind = type(error).__name__
    records = [record for record in caplog.records if record.name.startswith("snne")]
    assert [r.getMessage() for r in records] == [f"observer Raising raised {kind}"] * 2
    assert PRIVATE not in caplog.text
    join_threads()


def test_a_hanging_observer_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(observe, "_FLUSH_SECONDS", 0.01)
    hanging, keeper = Hanging(), Keeper()
    hub = ObserverHub([hanging, keeper])
    hub.assessed(ASSESSMENT)
    assert hub.failures >= 1
    stuck, _other = hub._workers
    assert stuck._stuck
    monkeypatch.setattr(observe, "_FLUSH_SECONDS", 3600.0)
    hub.assessed(ASSESSMENT)  # were it waited for again, the test would not end
    assert stuck.failures == 1
    assert "observer Hanging did not return in time" in caplog.text
    hanging.gate.set()
    join_threads()
    assert hanging.told == ["an id", "an id"]
    assert len(keeper.told) == 2
    hub.assessed(ASSESSMENT)
    join_threads()
    assert len(hanging.told) == 3


def test_an_observer_that_comes_back_is_waited_for_again() -> None:
    hanging = Hanging()
    hanging.gate.set()
    hub = ObserverHub([hanging])
    (worker,) = hub._workers
    worker._stuck = True
    done = threading.Event()
    done.set()
    worker.settle(done, timeout=0.0)
    assert not worker._stuck
    hub.assessed(ASSESSMENT)
    assert hanging.told == ["an id"]


def test_announcing_waits_for_nothing() -> None:
    hanging = Hanging()
    hub = ObserverHub([hanging])
    hub.announce(ASSESSMENT)
    assert hub.failures == 0
    assert hanging.begun.wait(30)
    hanging.gate.set()
    join_threads()
    assert hanging.told == ["an id"]


def test_what_a_slow_observer_cannot_take_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(observe, "_CAPACITY", 3)
    monkeypatch.setattr(observe, "_FLUSH_SECONDS", 0.0)
    hanging = Hanging()
    hub = ObserverHub([hanging])
    hub.announce(ASSESSMENT)
    assert hanging.begun.wait(30)  # one is being told, so three more may wait
    for _ in range(5):
        hub.announce(ASSESSMENT)
    assert hub.failures == 2
    hub.assessed(ASSESSMENT)
    assert hub.failures == 3
    assert caplog.messages == ["observer Hanging is too slow, an event was dropped"] * 3
    hanging.gate.set()
    join_threads()
    assert len(hanging.told) == 4


def test_a_thread_ends_when_there_is_nothing_to_tell_and_begins_again() -> None:
    keeper = Keeper()
    hub = ObserverHub([keeper])
    for expected in (1, 2):
        hub.assessed(ASSESSMENT)
        join_threads()
        assert len(keeper.told) == expected
    assert not hub._workers[0]._running


def test_an_event_at_the_moment_of_giving_up_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeper = Keeper()
    hub = ObserverHub([keeper])
    (worker,) = hub._workers
    get, late = worker._events.get, list[threading.Event | None]()

    def get_and_post(timeout: float) -> Any:
        try:
            return get(timeout=timeout)
        except queue.Empty:
            if not late:  # between giving up and saying so
                late.append(worker.post("on_assessment", ASSESSMENT))
            raise

    monkeypatch.setattr(worker._events, "get", get_and_post)
    hub.announce(ASSESSMENT)
    join_threads()
    assert len(keeper.told) == 2
    assert late[0] is not None
    assert late[0].is_set()


def test_events_of_many_threads_all_arrive() -> None:
    keeper, barrier = Keeper(), threading.Barrier(20)
    hub = ObserverHub([keeper])

    def post(number: int) -> None:
        barrier.wait(30)
        for index in range(20):
            hub.sample_started(event(number * 100 + index))

    threads = [threading.Thread(target=post, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    hub.assessed(ASSESSMENT)
    assert len({found.index for name, found in keeper.told if name == "start"}) == 400
    assert hub.failures == 0


class Plain:
    """An observer that can be pickled."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain)

    __hash__ = None  # type: ignore[assignment]  # only compared


def test_another_process_starts_anew() -> None:
    hub = ObserverHub([Plain()])
    copy = pickle.loads(pickle.dumps(hub))  # noqa: S301 - our own bytes
    assert copy._observers == (Plain(),)
    copy.assessed(ASSESSMENT)
    assert copy.failures == 0
