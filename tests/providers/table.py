"""The tables of ``docs/providers.md``, written from the table in the code.

``python -m tests.providers.table`` puts them into the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import PROVIDERS, SERVERS, UNKNOWN

__all__ = ["PAGE", "TABLES", "page_with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
HEAD = (
    "provider",
    "LangChain class",
    "status",
    "temperature",
    "several replies in one request",
    "log-probabilities",
    "seed",
)


def _status(row: Provider) -> str:
    if row is UNKNOWN:
        return "the safe path"
    return "supported" if row.tested else "read in source only"


def _noted(said: str, note: str) -> str:
    return f"{said}; {note}" if note else said


def _temperature(row: Provider) -> str:
    if row.temperature is None:
        return _noted("not set", row.temperature_note)
    low, high = row.temperature_range
    most = "0 and above" if math.isinf(high) else f"{low:g} to {high:g}"
    return _noted(most, row.temperature_note)


def _batch(row: Provider) -> str:
    said = "no" if row.n is None else f"`{row.n}`"
    return _noted(said, row.n_note)


def _logprobs(row: Provider) -> str:
    return _noted("yes" if row.supports_logprobs else "no", row.logprobs_note)


def _cells(row: Provider) -> list[str]:
    named = [f"`{name}`" for name in row.classes if not name.startswith("Base")]
    seed = "left out" if row.seed is None else f"`{row.seed}`"
    return [
        row.name,
        ", ".join(named) or "any",
        _status(row),
        _temperature(row),
        _batch(row),
        _logprobs(row),
        seed,
    ]


def _table(rows: Sequence[Provider]) -> str:
    lines = [HEAD, ["---"] * len(HEAD), *map(_cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES = {
    "providers": _table((*PROVIDERS, UNKNOWN)),
    "servers": _table(SERVERS),
}
"""Each table by the name that marks its place on the page."""


def page_with_tables(page: str) -> str:
    """Return a page with each table written anew between the marks around it."""
    for name, table in TABLES.items():
        head, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        page = f"{head}{start}{table}\n{end}{tail}"
    return page


def main() -> None:
    """Write the tables into the page."""
    PAGE.write_text(page_with_tables(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
