"""``snne-guard evaluate``: texts that a terminal would obey, or cannot show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.lines import write
from tests.support.evaluating import questions


def test_what_recordings_say_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    rows = questions(6)
    for number, fields in enumerate(rows):
        fields["answer_protocol"] = "near\x1b[2J\x9b\ud800\nnext\u202e"
        fields["dataset"] = f"set\x1b]0;title\x07{number % 2}"
    path = write(tmp_path / "odd\x1bname.jsonl", *rows, b"{")

    status, out, error = _ran(path, "--by", "dataset", "--mean")

    assert status == 1
    assert "answers: near␛[2J\ufffd?␊next\ufffd" in out
    assert "set␛]0;title␇0" in out
    assert "odd␛name.jsonl: line 7" in error
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*out, *error}


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xffme.jsonl"))
    try:
        path.write_bytes(write(tmp_path / "plain.jsonl", *questions(6)).read_bytes())
    except OSError:  # pragma: no cover - macOS has no such names
        pytest.skip("this file system takes no such name")
    outputs = [tmp_path / f"out.{kind}" for kind in ("csv", "json")]

    status, out, _ = _ran(path, "--csv", outputs[0], "--json", outputs[1])

    assert status == 0
    assert out.startswith("na?me\n")
    assert all(output.stat().st_size for output in outputs)


def _ran(*arguments: str | Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "snne_guard", "evaluate", "--methods", "snne"]
    done = subprocess.run(  # noqa: S603 - our own program
        [*command, "--draws", "2", *arguments],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()
