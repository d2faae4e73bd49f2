"""What the documentation holds: blocks with their outputs, headings, links, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "PAGES", "ROOT", "Block", "anchors", "blocks", "links", "table"]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        language: What stands behind the opening fence.
        text: What is in it.
        line: Number of its first line in the page.
        follows: Whether nothing but white space is between it and the one before.
    """

    language: str
    text: str
    line: int
    follows: bool


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        found.append(
            Block(
                language=match[1],
                text=match[2],
                line=text.count("\n", 0, match.start(2)) + 1,
                follows=bool(found) and not text[end : match.start()].strip(),
            )
        )
        end = match.end()
    return found


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Return what a page links to and shows."""
    return [match[1] or match[2] for match in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {_slug(heading) for heading in headings}


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")


def table(page: Path, *, first: str) -> list[list[str]]:
    """Return the rows of the table whose first heading is ``first``."""
    lines = iter(prose(page).splitlines())
    for line in lines:
        if line.startswith("|") and _cells(line)[0] == first:
            next(lines)
            return list(_rows(lines))
    message = f"{page.name} has no table that begins with {first!r}"
    raise AssertionError(message)


def _rows(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield _cells(line)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
