"""Reads a page as a browser does: its elements, their texts, what is not closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "Page", "read"]

_VOID = frozenset({"meta", "br", "wbr", "link", "img", "input", "hr"})
_INLINE = frozenset({"a", "b", "bdi", "code", "i", "wbr"})


@dataclass(slots=True)
class Element:
    """An element and what is in it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


class Page(HTMLParser):
    """A page whose elements are all closed in order; anything else is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.declared = ""
        self._open: list[Element] = []

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a kind, in order."""
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(k) == v for k, v in attributes.items())
        ]

    def handle_decl(self, decl: str) -> None:
        self.declared = decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(
            tag=tag,
            attributes={name: value or "" for name, value in attrs},
            parents=tuple(each.tag for each in self._open),
        )
        assert len(element.attributes) == len(attrs), f"<{tag}> says something twice"
        self.elements.append(element)
        if tag not in _INLINE:
            self.handle_data(" ")
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert any(each.tag == "svg" for each in self._open), f"<{tag}/> in HTML"
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)

    def close(self) -> None:
        super().close()
        assert not self._open, f"{self._open[-1].tag} is never closed"


def read(html: str) -> Page:
    """Return what is in a page."""
    page = Page()
    page.feed(html)
    page.close()
    return page
