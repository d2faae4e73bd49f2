"""A grader that a command line names as module:function."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import grade_all, import_function, resolve_grader
from tests.support.grading import answered

MODULE = """
import {beside}

class Rules:
    @staticmethod
    def short(recording):
        return len(recording.main_answer) < {beside}.LIMIT

def broken(recording):
    raise KeyError(recording.id)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    # A name of its own for each test, since Python keeps what it has imported.
    name = f"rules_of_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(beside=f"{name}_beside"))
    (tmp_path / f"{name}_beside.py").write_text("LIMIT = 4")
    monkeypatch.chdir(tmp_path)
    return name


def test_a_function_of_the_current_folder(module: str) -> None:
    before = list(sys.path)
    grader = resolve_grader(f"{module}:Rules.short")

    rows = [answered("yes"), answered("indeed"), answered("yes", label=0)]
    grades = grade_all(rows, grader)

    assert [grade and grade.correct for grade in grades] == [1, 0, 0]
    assert grader.name == f"label, else {module}:Rules.short"
    assert sys.path == before


def test_a_function_of_another_folder(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)

    short = import_function(f"{module}:Rules.short", folder=tmp_path)

    assert short(answered("yes"))


def test_what_the_function_raises_is_passed_on(module: str) -> None:
    with pytest.raises(KeyError):
        grade_all([answered("x")], resolve_grader(f"{module}:broken"))


def test_what_the_module_lacks_is_named_as_python_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules_in_need.py").write_text("import surely_not_installed_here")

    with pytest.raises(ModuleNotFoundError, match="surely_not_installed_here"):
        resolve_grader("rules_in_need:f")
    with pytest.raises(ConfigurationError, match=r"a module 'rules\.in_need' in"):
        resolve_grader("rules.in_need:f")
