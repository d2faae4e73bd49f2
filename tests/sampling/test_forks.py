"""A forked process waits for nothing that only its parent's threads could give back."""

from __future__ import annotations

import os
import signal

import pytest

from snne_guard import Breaker, Budget
from snne_guard import _forks as forks
from snne_guard.sampling import Limiter
from snne_guard.sampling.breaker import Circuit
from snne_guard.sampling.budget import Ledger
from snne_guard.sampling.memory import Memory
from snne_guard.types import Cost


class Shared:
    """What a guard shares, in the middle of everything."""

    def __init__(self) -> None:
        self.limiter = Limiter(1)
        self.memory = Memory()
        self.memory.learn_batch(2, asked=3)
        self.circuit = Circuit(Breaker(failures=2))
        for _ in range(2):
            self.circuit.ended(TimeoutError())
        self.ledger = Ledger(Budget(tokens_per_minute=100))
        answer = Cost(calls=1, prompt_tokens=20, completion_tokens=80)
        self.ledger.open(characters=60).answered(answer)

    def is_stuck(self) -> bool:
        """Return whether nothing more is let through, as it should be at first."""
        return not self.circuit.admits("a call") and self._affordable() == 0

    def is_free(self) -> bool:
        with self.limiter.hold(timeout=0.0):
            return (
                self.circuit.admits("a call")
                and self.memory.batch == 2
                and self.memory.settle_logprobs(seen=False) is False
                and self._affordable() == 1
            )

    def _affordable(self) -> int | None:
        tab = self.ledger.open(characters=6)
        tab.answered(Cost(calls=1, prompt_tokens=2, completion_tokens=2))
        return tab.samples(1, batch=1, least=1)


def test_beginning_anew_forgets_what_others_hold() -> None:
    shared = Shared()
    assert shared.is_stuck()
    with shared.limiter.hold(), shared.memory._lock, shared.ledger.lock:
        forks._begin_all()
        assert shared.is_free()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_process_begins_anew() -> None:
    shared = Shared()
    with shared.limiter.hold(), shared.circuit._lock, shared.ledger.lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - in the child
            signal.alarm(300)  # rather than wait for ever
            os._exit(0 if shared.is_free() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert shared.is_stuck()
