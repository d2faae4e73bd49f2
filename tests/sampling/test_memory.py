"""What a guard learns about its provider, and only learns downwards."""

from __future__ import annotations

import pickle
import threading

from snne_guard.sampling.memory import Memory


def test_nothing_is_known_before_a_call() -> None:
    memory = Memory()
    assert (memory.batch, memory.logprobs) == (None, None)


def test_a_whole_batch_teaches_nothing() -> None:
    memory = Memory()
    memory.learn_batch(4, asked=4)
    assert memory.batch is None


def test_the_smallest_batch_is_remembered() -> None:
    memory = Memory()
    memory.learn_batch(3, asked=9)
    memory.learn_batch(5, asked=9)
    assert memory.batch == 3
    memory.learn_batch(1, asked=9)
    assert memory.batch == 1


def test_log_probabilities_are_settled_once() -> None:
    memory = Memory()
    assert memory.settle_logprobs(seen=True) is True
    assert memory.settle_logprobs(seen=False) is True
    other = Memory()
    assert other.settle_logprobs(seen=False) is False
    assert other.settle_logprobs(seen=True) is False


def test_threads_agree_on_what_is_settled() -> None:
    memory, barrier = Memory(), threading.Barrier(20)
    found: list[bool] = []

    def settle(index: int) -> None:
        barrier.wait(60)
        found.append(memory.settle_logprobs(seen=index % 2 == 0))

    threads = [threading.Thread(target=settle, args=(index,)) for index in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [memory.logprobs] * 20


def test_another_process_starts_anew() -> None:
    memory = Memory()
    memory.learn_batch(1, asked=4)
    memory.settle_logprobs(seen=True)
    copy = pickle.loads(pickle.dumps(memory))  # noqa: S301 - our own bytes
    assert (copy.batch, copy.logprobs) == (None, None)
    copy.learn_batch(2, asked=4)
    assert copy.batch == 2
