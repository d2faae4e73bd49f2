from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import run
from tests.evaluation.support import write_jsonl

ROWS: list[dict[str, Any]] = [
    {
        "id": name,
        "question": f"question {name}",
        "main_answer": f"answer {name}",
        "samples": [f"sample {name}"],
        "answers": [f"reference {name}"],
    }
    for name in "ijc"
]
ORDER = ["j", "c", "i"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "r.jsonl", ROWS)


def labels(path: Path) -> dict[str, int]:
    lines = path.with_name("r.labels.jsonl").read_text().splitlines()
    return {row["id"]: row["label"] for row in map(json.loads, lines)}


def shown(text: str) -> list[str]:
    """Return the ids of the answers that were shown, in order."""
    lines = [line.split() for line in text.splitlines() if line.startswith("Answer")]
    return [line[-1] for line in lines]


def test_one_key_an_answer(recording: Path) -> None:
    before = recording.read_bytes()
    found = run("label", recording, keys="r\nw\ns\n")
    assert found.exit_code == 0, found.output
    assert shown(found.stdout) == ORDER
    for part in ("question j", "reference j", "answer j"):
        assert part in found.stdout
    assert "sample" not in found.stdout
    assert labels(recording) == {"j": 1, "c": 0}
    for count in ("right        1", "wrong        1", "left         1"):
        assert count in found.stdout
    assert recording.read_bytes() == before


IGNORED = "x\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
@pytest.mark.parametrize(
    ("keys", "given"),
    [("rwq", {"j": 1, "c": 0}), ("xR\nsw", {"j": 1, "i": 0}), ("r\x03", {"j": 1})],
)
def test_on_a_terminal_a_key_needs_no_enter(
    recording: Path, keys: str, given: dict[str, int]
) -> None:
    import pty

    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "snne_guard", "label", str(recording)]
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end) as process:  # noqa: S603 - our own program
        os.close(end)
        _until_asked(terminal)
        for key in keys:
            os.write(terminal, key.encode())
            # What is no answer is not echoed, so nothing tells when it was read.
            _until_asked(terminal, quiet=0.5 if key in IGNORED else 60.0)
        assert process.wait(60) == 0
    os.close(terminal)
    assert labels(recording) == given


def _until_asked(terminal: int, *, quiet: float = 60.0) -> None:
    """Wait until nothing more comes, as at a question, or the program has ended."""
    while select.select([terminal], [], [], quiet)[0]:
        quiet = 0.5
        try:
            os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            return


def test_a_csv_file_is_labelled(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("Frage,Antwort\nWarum?,Darum\nWie?,So\n")
    columns = ("--column", "question=Frage", "--column", "main_answer=Antwort")
    found = run("label", path, *columns, keys="r\nw\n")
    assert found.exit_code == 0, found.output
    assert "right        1\nwrong        1" in found.stdout
    assert len(labels(path)) == 2
    refused = run("label", path)
    assert refused.exit_code == 2
    assert "r.csv, line 2: question: Field required" in refused.stderr


def test_the_same_command_goes_on(recording: Path) -> None:
    assert shown(run("label", recording, keys="r\nq\n").stdout) == ORDER[:2]
    again = run("label", recording, keys="w\nw\n")
    assert shown(again.stdout) == ORDER[1:]
    assert labels(recording) == {"j": 1, "c": 0, "i": 0}
    assert shown(run("label", recording).stdout) == []


def test_the_end_of_the_input_quits(recording: Path) -> None:
    found = run("label", recording, keys="")
    assert found.exit_code == 0
    assert "q quit: \nright        0\n" in found.stdout


def test_back_replaces_a_label(recording: Path) -> None:
    found = run("label", recording, keys="b\nr\nb\nw\nq\n")
    assert shown(found.stdout) == ["j", "j", "c", "j", "c"]
    assert "Label      right" in found.stdout
    assert labels(recording) == {"j": 0}


def test_escape_sequences_do_nothing(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x1b]52;c;aGk=\x07\x9b1A\u202e[bold red]x[/]"
    row = {
        **ROWS[0],
        "question": hostile,
        "main_answer": f"one\r\n{hostile}",
        "answers": [hostile],
        "context": hostile,
    }
    found = run("label", write_jsonl(tmp_path / "r.jsonl", [row]), keys="r\n")
    assert found.exit_code == 0
    assert not set("\x1b\x07\x9b\u202e\r") & set(found.stdout)
    assert found.stdout.count("[bold red]x[/]") == 4
