"""Never more holders than places, and never a place lost."""

from __future__ import annotations

import asyncio
import pickle
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.sampling import Limiter
from snne_guard.sampling.limiter import NoPlaceError


class Room:
    """Counts who is inside, and the most that ever were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside = self.peak = self.visits = 0

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.visits += 1
            self.peak = max(self.peak, self.inside)

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self.inside -= 1


def free_places(limiter: Limiter, limit: int) -> int:
    """Return how many get in without waiting, up to one more than the limit."""
    holds = [limiter.hold(timeout=0) for _ in range(limit + 1)]
    entered = []
    for hold in holds:
        try:
            hold.__enter__()
        except TimeoutError:
            break
        entered.append(hold)
    for hold in entered:
        hold.__exit__(None, None, None)
    return len(entered)


def test_threads_and_tasks_share_the_places() -> None:
    limiter, room = Limiter(7), Room()
    barrier = threading.Barrier(51)
    full = threading.Barrier(2)
    barrier_broken: list[bool] = []

    def thread(index: int) -> None:
        barrier.wait(30)
        with limiter.hold(), room:
            if index < 2:  # two must be inside at once, or this never ends
                try:
                    full.wait(30)
                except threading.BrokenBarrierError:
                    barrier_broken.append(True)

    async def task() -> None:
        async with limiter.ahold():
            with room:
                await asyncio.sleep(0)

    async def tasks() -> None:
        await asyncio.to_thread(barrier.wait, 30)
        await asyncio.gather(*(task() for _ in range(200)))

    threads = [threading.Thread(target=thread, args=(index,)) for index in range(50)]
    for each in threads:
        each.start()
    asyncio.run(asyncio.wait_for(tasks(), 60))
    for each in threads:
        each.join(30)
    assert (room.visits, room.inside, barrier_broken) == (250, 0, [])
    assert 2 <= room.peak <= 7
    assert free_places(limiter, 7) == 7


def test_several_event_loops_share_the_places() -> None:
    limiter, room = Limiter(3), Room()

    async def task() -> None:
        async with limiter.ahold():
            with room:
                await asyncio.sleep(0)

    async def tasks() -> None:
        await asyncio.wait_for(asyncio.gather(*(task() for _ in range(50))), 60)

    threads = [threading.Thread(target=asyncio.run, args=(tasks(),)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert room.visits == 200
    assert room.peak <= 3
    assert free_places(limiter, 3) == 3


async def test_a_thread_that_leaves_wakes_the_loop_that_waits() -> None:
    limiter = Limiter(1)

    async def enter() -> str:
        async with limiter.ahold():
            return "in"

    held = limiter.hold()
    held.__enter__()
    task = asyncio.create_task(enter())
    await asyncio.sleep(0)
    await asyncio.to_thread(held.__exit__, None, None, None)
    assert await asyncio.wait_for(task, 60) == "in"


def test_a_loop_that_is_closed_is_not_woken(caplog: pytest.LogCaptureFixture) -> None:
    limiter = Limiter(1)

    async def wait() -> None:
        async with limiter.ahold():
            raise AssertionError

    loop = asyncio.new_event_loop()
    with limiter.hold():
        task = loop.create_task(wait())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    assert "exception" not in caplog.text
    coroutine: Any = task.get_coro()
    coroutine.close()


async def test_without_a_limit_nobody_waits() -> None:
    limiter, room = Limiter(), Room()

    async def task(everyone: asyncio.Barrier) -> None:
        async with limiter.ahold():
            with limiter.hold(), room:
                await everyone.wait()

    everyone = asyncio.Barrier(100)
    await asyncio.wait_for(asyncio.gather(*(task(everyone) for _ in range(100))), 30)
    assert room.peak == 100


async def test_first_come_first_served() -> None:
    limiter, served = Limiter(1), list[int]()

    async def task(index: int) -> None:
        async with limiter.ahold():
            served.append(index)

    async with limiter.ahold():
        tasks = [asyncio.create_task(task(index)) for index in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
    await asyncio.wait_for(asyncio.wait(tasks), 30)
    assert served == [0, 1, 3, 4]


def test_waiting_ends_with_the_time_limit_and_loses_no_place() -> None:
    limiter = Limiter(1)
    with limiter.hold():
        with pytest.raises(TimeoutError), limiter.hold(timeout=0.01):
            pytest.fail("there was no place")
        assert free_places(limiter, 1) == 0
    assert free_places(limiter, 1) == 1


def test_an_error_inside_gives_the_place_back() -> None:
    limiter = Limiter(1)
    with pytest.raises(ValueError, match="mine"), limiter.hold():
        raise ValueError("mine")  # noqa: EM101 - the text is looked for
    assert free_places(limiter, 1) == 1


async def test_a_task_cancelled_inside_gives_the_place_back() -> None:
    limiter = Limiter(1)

    async def stay() -> None:
        async with limiter.ahold():
            await asyncio.Event().wait()

    task = asyncio.create_task(stay())
    await asyncio.sleep(0)
    assert free_places(limiter, 1) == 0
    task.cancel()
    await asyncio.wait([task])
    assert free_places(limiter, 1) == 1


async def test_a_place_given_to_a_task_that_is_cancelled_is_passed_on() -> None:
    limiter, served = Limiter(1), list[str]()

    async def task(name: str) -> None:
        async with limiter.ahold():
            served.append(name)

    async with limiter.ahold():
        first = asyncio.create_task(task("first"))
        second = asyncio.create_task(task("second"))
        await asyncio.sleep(0)
    # The place is the first one's by now, but it has not run since.
    first.cancel()
    await asyncio.wait_for(asyncio.wait([first, second]), 30)
    assert first.cancelled()
    assert served == ["second"]
    assert free_places(limiter, 1) == 1


def test_a_place_given_as_the_wait_runs_out_is_passed_on() -> None:
    limiter = Limiter(1)
    with limiter.hold():
        ticket = limiter._enter()
        assert ticket is not None
    limiter._give_up(ticket)
    assert free_places(limiter, 1) == 1


def test_another_process_starts_anew() -> None:
    limiter = Limiter(2)
    with limiter.hold():
        copy = pickle.loads(pickle.dumps(limiter))  # noqa: S301 - our own bytes
    assert copy.limit == 2
    assert free_places(copy, 2) == 2


steps = st.lists(
    st.tuples(st.sampled_from(["start", "leave", "cancel", "tick"]), st.integers(0, 30))
)


@settings(deadline=None)
@given(limit=st.integers(1, 4), plan=steps)
def test_whatever_comes_goes_and_is_cancelled_no_place_is_lost(
    limit: int, plan: list[tuple[str, int]]
) -> None:
    async def play() -> None:
        limiter, room = Limiter(limit), Room()
        gates: list[asyncio.Event] = []
        tasks: list[asyncio.Task[None]] = []

        async def visit(gate: asyncio.Event) -> None:
            async with limiter.ahold():
                with room:
                    await gate.wait()

        for step, index in plan:
            if step == "start":
                gates.append(asyncio.Event())
                tasks.append(asyncio.create_task(visit(gates[-1])))
            elif step == "tick":
                await asyncio.sleep(0)
            elif tasks and step == "leave":
                gates[index % len(gates)].set()
            elif tasks:
                tasks[index % len(tasks)].cancel()
        for gate in gates:
            gate.set()
        if tasks:
            await asyncio.wait_for(asyncio.wait(tasks), 30)
        assert room.peak <= limit
        assert room.inside == 0
        assert free_places(limiter, limit) == limit

    asyncio.run(play())


def test_a_place_that_is_taken_from_a_waiting_thread_is_not_lost() -> None:
    limiter = Limiter(1)
    with limiter.hold():
        ended: list[type[BaseException]] = []

        def wait() -> None:
            try:
                with limiter.hold():
                    pass
            except BaseException as error:  # noqa: BLE001 - which one is the point
                ended.append(type(error))

        thread = threading.Thread(target=wait)
        thread.start()
        while not limiter._waiting:
            thread.join(0.001)
        limiter._waiting[0].cancel()
        thread.join(60)
        with pytest.raises(NoPlaceError), limiter.hold(timeout=0.01):
            pass
    assert ended == [CancelledError]
    with limiter.hold(timeout=60):
        pass
