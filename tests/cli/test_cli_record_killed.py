"""``snne-guard record``, killed, not alone, left by its server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from snne_guard.evaluation import Recording, read_recordings
from tests.cli.lines import read, write
from tests.cli.record_command import arguments_for, ask_for, run_on
from tests.support.chat_server import ChatServer, Gate, Reply, Request, always, cycle
from tests.support.guarding import is_sample

NAMES = [f"q{number}" for number in range(12)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", *map(ask_for, NAMES))


def started(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """Run the command in a process of its own."""
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-m", "snne_guard", "record", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENAI_API_KEY": "test"},
    )


def test_a_kill_midway_loses_and_doubles_nothing(source: Path) -> None:
    output = source.with_name("out.jsonl")
    options = ["--max-concurrency", "2", "--samples", "3"]
    gate, held_from = Gate(), 13

    def script(request: Request) -> Reply:
        # Two requests a question: six or so are recorded, the next ones hang.
        held = request.index >= held_from
        return Reply(texts=("Au",), gate=gate if held else None)

    with ChatServer(script) as server:
        command: list[str | Path] = [
            source,
            "-o",
            output,
            *options,
            *arguments_for(server),
        ]
        with started(*command) as process:
            try:
                server.wait_until(requests=held_from + 2, seconds=120)
                second = run_on(server, source, output, *options)
            finally:
                process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert second.exit_code == 2
        assert "another run is writing" in second.stderr

        before = read(output)
        assert 5 <= len(before) <= 6
        # As if the kill had come in the middle of a write.
        with output.open("ab") as file:
            file.write(b'{"id": "q11", "question": "Wh')
        asked = len(server.requests)
        gate.open()
        server.script = cycle(["Au", "Ag"])
        result = run_on(server, source, output, *options)
        again = Counter(request.prompt for request in server.requests[asked:])

    assert result.exit_code == 0, result.output
    counts = [f"recorded     {12 - len(before)}", f"before       {len(before)}"]
    assert result.stdout.splitlines()[:2] == counts
    assert "29 bytes of a torn line are now in" in result.stderr
    rows = [row for _, row in read_recordings(output, strict=True)]
    recorded = [row.id for row in rows if isinstance(row, Recording)]
    assert sorted(recorded) == sorted(NAMES)
    assert read(output)[: len(before)] == before
    assert all(isinstance(row, Recording) and len(row.samples) == 3 for row in rows)
    # What was recorded before is not paid again.
    known = {row["id"] for row in before}
    assert again == {f"What is {name}?": 2 for name in NAMES if name not in known}


def test_a_server_that_dies_midway_is_not_asked_for_the_whole_file(
    source: Path,
) -> None:
    output = source.with_name("out.jsonl")
    options = ["--max-concurrency", "1", "--max-attempts", "1", "--samples", "2"]
    gate = Gate()

    def script(request: Request) -> Reply:
        return Reply(texts=("Au",), gate=gate if request.index >= 7 else None)

    with ExitStack() as serving:
        server = serving.enter_context(ChatServer(script))

        def die() -> None:
            server.wait_until(requests=8, seconds=120)
            serving.close()

        killer = threading.Thread(target=die)
        killer.start()
        result = run_on(server, source, output, *options)
        killer.join()
    assert result.exit_code == 1
    assert "the provider is failing: " in result.stderr
    assert "the same command goes on from here" in result.stderr
    counts = ["recorded     3", "failed       0", "left         9"]
    assert result.stdout.splitlines()[:3] == counts
    before = read(output)
    assert [row["id"] for row in before] == NAMES[:3]

    with ChatServer(always("Ag")) as server:
        result = run_on(server, source, output, *options)
        answers = [r.prompt for r in server.requests if not is_sample(r)]
    assert result.exit_code == 0, result.output
    assert len(answers) == 9
    rows = read(output)
    assert rows[:3] == before
    assert [row["id"] for row in rows] == NAMES
    # Of the fourth question the answer had come, and is kept.
    assert [row["main_answer"] for row in rows] == ["Au"] * 4 + ["Ag"] * 8
    assert sorted(path.name for path in source.parent.iterdir()) == [
        "in.jsonl",
        "out.jsonl",
    ]
