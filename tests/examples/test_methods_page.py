"""The tables of the page on methods say what the methods say of themselves."""

from __future__ import annotations

import re
from typing import Any

import pytest

from snne_guard import scorers
from snne_guard.scorers import METHODS, READINGS
from snne_guard.similarity import entailment
from tests.examples.doc_pages import DOCS, table
from tests.scorers.test_vectors_readings import EQUAL
from tests.support.reference_vectors import NEEDS_VECTORS, vectors

PAGE = DOCS / "methods.md"


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def rows(second: str) -> dict[str, list[str]]:
    """Return the rows of a table of methods by name; the page has three of them.

    A bar within a cell is written with a stroke before it.
    """
    text = PAGE.read_text(encoding="utf-8")
    lines = text.splitlines()
    (start,) = (i for i, line in enumerate(lines) if line.startswith(second))
    found: dict[str, list[str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
        cells = [cell.strip().replace("\\|", "|") for cell in parts]
        found[cells[0].strip("`")] = cells
    return found


FORMULAS = "| method | formula |"
NEEDS = "| method | needs |"
OTHERS = "| reading | what is built |"


def test_every_method_is_in_both_tables() -> None:
    assert sorted(rows(FORMULAS)) == sorted(METHODS)
    assert sorted(rows(NEEDS)) == sorted(METHODS)
    assert table(PAGE, first="method")[0][0] == "`snne`"


@pytest.mark.parametrize("name", METHODS)
def test_limits_are_those_of_the_method(name: str) -> None:
    limits = METHODS[name].bounds(10)
    said = rows(FORMULAS)[name][3]

    assert said == ("none" if limits is None else f"{limits[0]:.4f} to {limits[1]:.4f}")


@pytest.mark.parametrize("name", METHODS)
def test_needs_are_those_of_the_method(name: str) -> None:
    method = METHODS[name]
    _, needs, box, similarity, _ = rows(NEEDS)[name]

    assert quoted(needs) == sorted(method.needs)
    assert box == ("white" if method.white_box else "black")
    assert similarity in ("", f"`{method.default_similarity}`")


def keys_of(value: Any) -> set[str]:
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(keys_of(inner) for inner in value.values()))


@NEEDS_VECTORS
@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_equals_is_in_the_vectors(name: str) -> None:
    assert set(quoted(rows(NEEDS)[name][4])) <= known_keys()


def known_keys() -> set[str]:
    found = (keys_of(case["expected"]) for case in vectors()["cases"])
    return set(vectors()["theorems"][0]).union(*found)


@NEEDS_VECTORS
@pytest.mark.parametrize("name", READINGS)
def test_what_a_reading_equals_is_in_the_vectors(name: str) -> None:
    keys = quoted(rows(OTHERS)[name][3])

    assert set(keys) <= known_keys()
    compared = EQUAL.get(name)
    if compared is not None:
        # The keys that say which number it is, from the outer to the inner one.
        path, _ = compared
        assert path[-1] in keys


def test_every_reading_is_in_the_table_with_a_function_that_there_is() -> None:
    table_rows = rows(OTHERS)

    assert sorted(table_rows) == sorted(READINGS)
    for cells in table_rows.values():
        for call in quoted(cells[4]):
            name = call.partition("(")[0]
            known = hasattr(scorers, name) or hasattr(entailment, name)
            assert known or name.startswith("similarity="), call
