from __future__ import annotations

from pathlib import Path

import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import read_labelled
from snne_guard.evaluation.jsonl import AppendFile, beside
from snne_guard.evaluation.recordings import answer_digest, read_labels
from tests.evaluation.support import recording, write_jsonl


def test_the_last_label_of_the_very_answer_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    shown = recording(main_answer="hidden", context="c")
    digest = answer_digest(shown)
    assert digest == answer_digest(recording(**shown.to_dict() | {"samples": ["x"]}))
    write_jsonl(path, [shown.to_dict()])
    assert [row.label for row in read_labelled(path)] == [None]
    lines = [{"id": "1", "label": n, "answer": digest} for n in (0, 1)]
    write_jsonl(beside(path, "labels"), lines)
    assert "hidden" not in beside(path, "labels").read_text()
    assert [row.label for row in read_labelled(path)] == [1]
    for changed in ({"main_answer": "b"}, {"question": "x"}, {"context": "d"}):
        write_jsonl(path, [shown.to_dict() | changed])
        assert [row.label for row in read_labelled(path)] == [None]


@pytest.mark.parametrize(
    "line", ["{", '{"id": "1"}', '{"id": "1", "label": 2, "answer": "x"}']
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.labels.jsonl"
    path.write_text('{"id": "0", "label": 1, "answer": "x"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"a\.labels\.jsonl, line 2: "):
        read_labels(path)


def test_an_unfinished_line_is_cut_off_and_a_finished_one_is_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.labels.jsonl"
    whole = '{"id": "0", "label": 1, "answer": "0"}'
    path.write_text(f'{whole}\n{{"id": "1", "la')
    assert list(read_labels(path)) == ["0"]
    more = {"id": "2", "label": 0, "answer": "2"}
    with AppendFile(path) as file:
        assert path.read_text() != f"{whole}\n"  # nothing is lost before a label comes
        file.append(more)
    assert list(read_labels(path)) == ["0", "2"]
    path.write_text(f"{whole}\n{whole.replace('0', '1')}")
    with AppendFile(path) as file:
        file.append(more)
    assert list(read_labels(path)) == ["0", "1", "2"]


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with AppendFile(path), pytest.raises(ConfigurationError, match="another process"):
        AppendFile(path)
    AppendFile(path).close()
