from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Label, read_labels, with_labels
from snne_guard.evaluation.jsonl import AppendFile
from snne_guard.evaluation.label import answer_digest, is_labelled, random_order
from tests.evaluation.support import recording, write_jsonl


def test_labels_are_read_back_the_last_one_of_each(tmp_path: Path) -> None:
    path = tmp_path / "a.labels.jsonl"
    row, other = recording(id="1", main_answer="hidden"), recording(id="2")
    digest = answer_digest(row)
    write_jsonl(path, [{"id": "1", "label": n, "answer": digest} for n in (0, 1)])
    labels = read_labels(path)
    assert [one.label for one in with_labels([row, other], labels)] == [1, None]
    assert "hidden" not in path.read_text()


def test_a_label_counts_for_the_very_answer_only() -> None:
    row = recording(main_answer="a", context="c")
    labels = {"1": Label(id="1", label=1, answer=answer_digest(row))}
    assert is_labelled(row, labels)
    for changed in ({"main_answer": "b"}, {"question": "x"}, {"context": "d"}):
        other = recording(**{"main_answer": "a", "context": "c", **changed})
        assert not is_labelled(other, labels)
        assert next(with_labels([other], labels)) is other


def test_samples_do_not_change_whose_answer_it_is() -> None:
    assert answer_digest(recording(samples=["x"])) == answer_digest(recording())


def test_there_are_no_labels_where_there_is_no_file(tmp_path: Path) -> None:
    assert read_labels(tmp_path / "none.jsonl") == {}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"id": "1"}',
        '{"id": "1", "label": 2, "answer": "x"}',
        '{"id": "1", "label": true, "answer": "x"}',
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.labels.jsonl"
    path.write_text('{"id": "0", "label": 1, "answer": "x"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"a\.labels\.jsonl, line 2: expected a "):
        read_labels(path)


def test_an_unfinished_line_is_cut_off_and_a_finished_one_is_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.labels.jsonl"
    whole = '{"id": "0", "label": 1, "answer": "x"}'
    path.write_text(f'{whole}\n{{"id": "1", "la')
    assert list(read_labels(path)) == ["0"]
    more = {"id": "2", "label": 0, "answer": "y"}
    with AppendFile(path) as file:
        assert path.read_text() != f"{whole}\n"  # nothing is lost before a label comes
        file.append(more)
    assert list(read_labels(path)) == ["0", "2"]
    path.write_text(f"{whole}\n{whole.replace('0', '1')}")
    assert list(read_labels(path)) == ["0", "1"]
    with AppendFile(path) as file:
        file.append(more)
    assert list(read_labels(path)) == ["0", "1", "2"]


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with AppendFile(path), pytest.raises(ConfigurationError, match="another process"):
        AppendFile(path)
    AppendFile(path).close()


def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    program = (
        "import sys; from snne_guard.evaluation.jsonl import AppendFile\n"
        "file = AppendFile(sys.argv[1])\n"
        "for n in range(10**6): file.append({'n': n}); print(n, flush=True)"
    )
    with subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(20)]
        os.kill(child.pid, signal.SIGKILL)
    with AppendFile(path) as file:  # the lock of the killed process is gone
        kept = [row["n"] for row in file.read(dict)]
    assert kept[: len(told)] == told
    assert kept == list(range(len(kept)))


def test_the_random_order_depends_on_ids_alone() -> None:
    rows = [recording(id=name) for name in "abcdefgh"]
    order = [row.id for row in random_order(rows)]
    assert order == [row.id for row in random_order(reversed(rows))]
    assert sorted(order) == list("abcdefgh")
    assert order != sorted(order)
    fewer = [row.id for row in random_order(rows[:5])]
    assert fewer == [name for name in order if name in "abcde"]
