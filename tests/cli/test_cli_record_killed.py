"""``snne-guard record`` as a process: killed, not alone, left by its server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from snne_guard.evaluation import Recording, read_recordings
from tests.cli.record_command import arguments_for, ask_for, questions, read
from tests.support.chat_server import ChatServer, Gate, Reply, Request, always, cycle
from tests.support.guarding import is_sample

NAMES = [f"q{number}" for number in range(12)]


@contextmanager
def started(*arguments: str | Path) -> Generator[subprocess.Popen[str]]:
    """Run the command in a process of its own, which does not outlive the test."""
    environment = {**os.environ, "OPENAI_API_KEY": "test"}
    with subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-m", "snne_guard", "record", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return questions(tmp_path / "in.jsonl", *map(ask_for, NAMES))


def test_a_kill_midway_loses_and_doubles_nothing(source: Path) -> None:
    output = source.with_name("out.jsonl")
    gate, killed_after = Gate(), 13

    def script(request: Request) -> Reply:
        # Two requests a question: six or so are recorded, the next ones hang.
        held = request.index >= killed_after
        return Reply(texts=("Au",), gate=gate if held else None)

    with ChatServer(script) as server:
        command: list[str | Path] = [source, "-o", output, *arguments_for(server)]
        command += ["--max-concurrency", "2", "--samples", "3"]
        with started(*command) as process:
            server.wait_until(requests=killed_after + 2, seconds=60)

            with started(*command) as second:  # while the first one has the file
                _, told = second.communicate(timeout=60)
            assert second.returncode == 2
            assert "another run is writing" in told

            process.send_signal(signal.SIGKILL)
            assert process.wait(timeout=60) == -signal.SIGKILL
        before = read(output)
        assert 5 <= len(before) <= 6
        # As if the kill had come in the middle of a write.
        with output.open("ab") as file:
            file.write(b'{"id": "q11", "question": "Wh')
        asked = len(server.requests)

        gate.open()
        server.script = cycle(["Au", "Ag"])
        with started(*command) as process:
            done, told = process.communicate(timeout=60)
        again = Counter(request.prompt for request in server.requests[asked:])
    assert process.returncode == 0, told
    assert f"recorded     {12 - len(before)}\nbefore       {len(before)}\n" in done
    assert "29 bytes of a torn line are now in" in told

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
    gate = Gate()

    def script(request: Request) -> Reply:
        return Reply(texts=("Au",), gate=gate if request.index >= 7 else None)

    options = ["--max-concurrency", "1", "--max-attempts", "1", "--samples", "2"]
    with ExitStack() as serving:
        server = serving.enter_context(ChatServer(script))
        command: list[str | Path] = [
            source,
            "-o",
            output,
            *options,
            *arguments_for(server),
        ]
        with started(*command) as process:
            server.wait_until(requests=8, seconds=60)
            serving.close()
            done, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the provider is failing: " in told
    assert "the same command goes on from here" in told
    assert "recorded     3\nfailed       0\nleft         9\n" in done
    before = read(output)
    assert [row["id"] for row in before] == NAMES[:3]

    with ChatServer(always("Ag")) as server:
        with started(source, "-o", output, *options, *arguments_for(server)) as process:
            _, told = process.communicate(timeout=60)
        answers = [r.prompt for r in server.requests if not is_sample(r)]
    assert process.returncode == 0, told
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
