"""Every adapter has what a user needs of it: a row, an extra, an example, a test."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.examples.doc_pages import DOCS, ROOT, table
from tests.support.examples import EXAMPLES

PACKAGE = ROOT / "integrations" / "snne_guard_integrations"
ADAPTERS = sorted(
    path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("_")
)
PAGE = (DOCS / "integrations.md").read_text(encoding="utf-8")
HERE = Path(__file__).parent


def rows() -> dict[str, list[str]]:
    """Return the rows of the table by the names of their modules."""
    return {
        row[0].strip("`"): row[1:]
        for row in table(DOCS / "integrations.md", first="adapter")
    }


def test_the_table_lists_every_adapter_and_no_other() -> None:
    assert sorted(rows()) == ADAPTERS


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_has_an_extra_a_version_and_a_limit(name: str) -> None:
    extra, version, what, cannot = rows()[name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    assert set(re.findall(r"`([\w-]+)`", extra)) <= set(extras)
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for package, number in re.findall(r"([\w.-]+) (\d[\w.]*)", version):
        assert f"{package}=={number}" in pins
    assert what
    assert cannot


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_has_five_lines_an_example_and_a_test(name: str) -> None:
    assert f"snne_guard_integrations.{name}" in PAGE
    # Named so because Python looks for imports beside the program first.
    assert (EXAMPLES / "integrations" / f"with_{name}.py").exists()
    assert list(HERE.glob(f"test_{name}*.py"))


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_uses_public_names_only(name: str) -> None:
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
    modules = [
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    ]
    public = {
        "snne_guard",
        "snne_guard.decision",
        "snne_guard.errors",
        "snne_guard.langchain",
        "snne_guard.scorers",
        "snne_guard.similarity",
        "snne_guard.types",
    }
    ours = {module for module in modules if module.split(".")[0] == "snne_guard"}
    assert ours <= public
