"""The end of a process, and a fork, while the callback handler has work to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer, Gate, Reply, Request
from tests.support.guarding import split

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    """Run the program once, and return the lines of each of its processes."""
    held, released, first = Gate(), Gate(), iter([True])

    def answer(request: Request) -> Reply:
        if request.prompt == "release":
            released.open()
        waits = held if request.prompt == "until a sample is held" else None
        return Reply(texts=(request.prompt,), gate=waits)

    def sample(request: Request) -> Reply:
        if request.prompt == "held" and next(first, None):
            held.open()
        waits = released if request.prompt == "held" else None
        return Reply(texts=("Paris",), gate=waits, stall=request.prompt == "stall")

    program = [sys.executable, "-m", "tests.integrations.shadow_process"]
    with ChatServer(split(answer, sample)) as server:
        done = subprocess.run(  # noqa: S603 - this interpreter, a program of ours
            [*program, server.url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines: dict[str, list[str]] = {}
    for line in [*done.stdout.splitlines(), *done.stderr.splitlines()]:
        name, _, rest = line.partition(": ")
        lines.setdefault(name, []).append(rest)
    return lines


def test_the_end_of_the_process_waits_for_what_is_in_the_queue(
    said: dict[str, list[str]],
) -> None:
    assert sorted(said["drain"]) == ["assessed free", "assessed free", "done"]


def test_or_it_drops_that_and_says_so(said: dict[str, list[str]]) -> None:
    lost = "the process ends with 2 answers not assessed"
    assert said["drop"] == ["done", lost]


def test_a_provider_that_hangs_does_not_keep_the_process(
    said: dict[str, list[str]],
) -> None:
    lost = "the process ends with 2 answers not assessed"
    assert said["hang"] == ["done", lost]


def test_a_forked_process_assesses_its_own_answers_and_no_other(
    said: dict[str, list[str]],
) -> None:
    # Nothing of its parent's in the counts, done in time, one answer assessed.
    assert said["child"] == ["True True 1"]
    assert said["parent"] == ["True 2"]
    assert sorted(said["fork"]) == ["assessed free", "assessed held", "assessed held"]
