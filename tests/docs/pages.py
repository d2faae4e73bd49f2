"""What a page of the documentation holds: blocks, links, anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "ROOT", "Block", "anchors", "blocks", "links"]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^>]*?) -->\n\n?)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        language: What stands behind the opening fence.
        text: What is in it.
        line: Number of the line above its text.
        mark: The comment above it: ``run``, ``not run: reason``, ``output varies``.
        output: Text of the ``text`` block right below it; None where there is none or
            where it is marked as one that varies.
    """

    language: str
    text: str
    line: int
    mark: str
    output: str | None = None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    matches = list(_FENCE.finditer(text))
    found: list[Block] = []
    for index, match in enumerate(matches):
        output = None
        if (below := _below(text, match, matches[index + 1 : index + 2])) is not None:
            output = below
        line = text.count("\n", 0, match.start("text"))
        found.append(
            Block(
                language=match["language"],
                text=match["text"],
                line=line,
                mark=match["mark"] or "",
                output=output,
            )
        )
    return found


def _below(
    text: str, block: re.Match[str], following: list[re.Match[str]]
) -> str | None:
    for match in following:
        apart = text[block.end() : match.start()].strip()
        if match["language"] == "text" and not apart and not match["mark"]:
            return match["text"]
    return None


def links(page: Path) -> list[str]:
    """Return what a page links to and shows."""
    return [one or other for one, other in _LINK.findall(_prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))
