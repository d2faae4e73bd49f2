"""Has mkdocstrings read ``Example:`` in a docstring as it reads ``Examples:``."""
# ruff: noqa: INP001 - MkDocs loads it by its path

from __future__ import annotations

import re

import griffe


class Examples(griffe.Extension):
    """Renames the section in every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rename it in one docstring."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"(?m)^Example:$", "Examples:", text)
