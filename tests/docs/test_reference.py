"""The reference pages name what there is: every option, key and command."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from langchain_core.language_models import FakeListChatModel

import snne_guard
from snne_guard import SNNEGuard, errors
from snne_guard.cli.app import COMMANDS, app
from snne_guard.cost import RequestCost
from snne_guard.types import Assessment, Field, Reply, Span

DOCS = Path(__file__).parents[2] / "docs"


def section(page: str, heading: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of a section's tables that begin with code."""
    lines = re.findall(r"^\| (`.+) \|$", text, re.MULTILINE)
    return [re.split(r" \| ", line) for line in lines]


def codes(cells: list[str]) -> list[str]:
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def test_the_table_of_options_is_that_of_the_guard() -> None:
    listed = {
        name.strip("`"): ast.literal_eval(default.strip("`"))
        for name, default, _ in rows(section("options.md", "All options"))
    }
    parameters = inspect.signature(SNNEGuard.__init__).parameters.values()
    guard = SNNEGuard(FakeListChatModel(responses=["Paris"]))
    options = {
        option.name: getattr(guard, option.name)
        for option in parameters
        if option.kind is option.KEYWORD_ONLY
    }
    assert [*listed.items()] == [*options.items()]


def test_every_metadata_key_is_explained() -> None:
    listed = codes([row[0] for row in rows(section("options.md", "Metadata"))])
    span = Span(start=0, end=1, uncertainty=0.0, supported=1)
    field = Field(path="/a", uncertainty=0.0, supported=1)
    parts: Any = {"spans": (span,), "fields": (field,), "field_threshold": 0.5}
    parts |= {"grounded": 0.5}
    asked = RequestCost(role="sample", other_model="b")
    assessment = Assessment(id="1", answer=Reply(text="a"), requests=(asked,), **parts)
    assert sorted(listed) == sorted(assessment.to_metadata())


@pytest.mark.parametrize("name", [command.__name__ for command in COMMANDS])
def test_every_option_of_a_command_is_explained(name: str) -> None:
    text = section("commands.md", name)
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    listed = codes([*prose, *(row[0] for row in rows(text))])
    group: Any = typer.main.get_command(app)
    options = [
        each.opts
        for each in group.commands[name].params
        if each.param_type_name == "option"
    ]
    named = {code.split(" ")[0] for code in listed if code.startswith("-")}
    assert named == {spelling for opts in options for spelling in opts}


def test_every_command_has_a_section() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert found == [command.__name__ for command in COMMANDS]


def test_the_api_has_every_name_of_the_package() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: snne_guard\.(\w+)$", page, re.MULTILINE)
    elsewhere = {*errors.__all__, "Decision", "__version__"}
    assert {*snne_guard.__all__} <= {*listed, *elsewhere}
