"""Observers in a forked process: none of its parent's threads are there."""

from __future__ import annotations

import os
import threading

import pytest

from snne_guard.assess import ObserverHub, observe
from snne_guard.types import Assessment


class Teller:
    """Writes the ids that it is told of into a pipe, and waits at a gate if asked."""

    def __init__(self, pipe: int) -> None:
        self.pipe, self.gate = pipe, threading.Event()
        self.gate.set()
        self.begun = threading.Event()

    def on_assessment(self, found: Assessment) -> None:
        self.begun.set()
        assert self.gate.wait(60)
        os.write(self.pipe, found.id.encode() + b" ")


def told(reading: int, writing: int) -> bytes:
    """Return all that was written, once nobody can write any more."""
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_process_tells_its_own_observers() -> None:
    reading, writing = os.pipe()
    hub = ObserverHub([Teller(writing)])
    hub.assessed(Assessment(id="parent", answer=None))  # its thread idles now
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        hub.assessed(Assessment(id="child", answer=None))
        os._exit(hub.failures)
    assert os.waitpid(child, 0)[1] == 0
    assert told(reading, writing) == b"parent child "


def test_beginning_again_leaves_what_was_queued_to_the_parent() -> None:
    reading, writing = os.pipe()
    teller = Teller(writing)
    hub = ObserverHub([teller])
    teller.gate.clear()
    hub.announce(Assessment(id="old", answer=None))
    assert teller.begun.wait(60)
    hub.announce(Assessment(id="queued", answer=None))
    old = [each for each in threading.enumerate() if "observer" in each.name]
    observe._begin_again()  # as if these threads were not there
    teller.gate.set()
    hub.assessed(Assessment(id="new", answer=None))
    for thread in old:
        thread.join(30)
    assert set(told(reading, writing).split()) == {b"old", b"new"}
    assert hub.failures == 0
