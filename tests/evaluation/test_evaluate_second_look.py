"""Files that are not on the second look what they were on the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation.comparison.runner import evaluate
from tests.cli.lines import write
from tests.support.evaluating import questions


@pytest.mark.parametrize("change", ["answer", "order"])
def test_a_file_whose_lines_say_something_else_on_the_second_look(
    tmp_path: Path, change: str
) -> None:
    rows = questions(30)
    path = write(tmp_path / "rows.jsonl", *rows)
    other = (
        [rows[0], *reversed(rows[1:])]
        if change == "order"
        else [*rows[:9], {**rows[9], "main_answer": "another"}, *rows[10:]]
    )

    def spoil(text: str, line: int, told: str) -> None:
        del text, line, told
        write(path, *other)

    path.write_bytes(path.read_bytes() + b"{\n")
    with pytest.raises(InputError, match=r"changed while .* something else"):
        evaluate(path, methods="snne", on_problem=spoil, draws=5)


def test_lines_that_are_added_meanwhile_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", *questions(30))

    def add(_: str, done: int, __: int) -> None:
        with path.open("ab") as stream:
            stream.write(b'{"id": %d}\n' % done)

    found = evaluate(path, methods="snne", on_progress=add, draws=5)

    assert len(found.sets[0].ids) == 30
