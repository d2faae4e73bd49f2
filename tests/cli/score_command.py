"""``snne-guard score`` in this process, and what it reads and writes."""

from pathlib import Path

from typer.testing import CliRunner, Result

from snne_guard.cli import build_app

__all__ = ["ALIKE", "APART", "MIXED", "run"]


ALIKE = {"id": "a", "question": "?", "main_answer": "Paris", "samples": ["Paris"] * 4}
MIXED = {"id": "m", "question": None, "main_answer": "Paris", "samples": ["Paris", "x"]}
APART = {"id": "d", "question": "?", "main_answer": "one", "samples": ["two", "three"]}


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(build_app(), ["score", *map(str, arguments)], input=stdin)
