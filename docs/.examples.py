"""Has mkdocstrings read docstrings as they are written: their examples and formulas."""
# ruff: noqa: INP001 - MkDocs loads it by its path

from __future__ import annotations

import re
from textwrap import dedent

import griffe
from latex2mathml.converter import convert

_FORMULA = re.compile(
    r":math:`(?P<inline>[^`]+)`|^\.\. math::(?P<block>.*\n(?:[ ].+\n?)*)", re.MULTILINE
)


class Docstrings(griffe.Extension):
    """Renames ``Example:`` and turns LaTeX into MathML, which every browser draws."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change one docstring."""
        if obj.docstring:
            text = obj.docstring.value
            text = re.sub(r"(?m)^Example:$", "Examples:", text)
            obj.docstring.value = _FORMULA.sub(_as_mathml, text)


def _as_mathml(formula: re.Match[str]) -> str:
    if formula["inline"]:
        return convert(formula["inline"])
    drawn = convert(dedent(formula["block"]).strip(), display="block")
    # A phone scrolls a long formula, not the page.
    return f'<div style="overflow-x: auto">{drawn}</div>\n'
