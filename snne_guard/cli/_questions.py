"""The questions of one run of ``snne-guard record``: as they come, or chosen before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Protocol

from snne_guard.errors import InputError
from snne_guard.evaluation import BadLine, Question, parse_questions

__all__ = ["ChosenQuestions", "Questions", "StreamedQuestions"]

Row = tuple[int, Question | BadLine]


class Questions(Protocol):
    """Numbered lines or rows with what they ask."""

    @property
    def counts(self) -> bool:
        """Whether they can be gone through before they are drawn."""
        ...

    def rows(self, *, strict: bool = False) -> Iterator[Row]:
        """Go through them from the first one.

        Raises:
            InputError: With ``strict``, at the first bad line.
        """
        ...


class StreamedQuestions:
    """Questions that are read line by line.

    Args:
        stream: The lines.
        rewinds: Whether the stream can be read twice.
        limit: Take the first so many questions only.
    """

    def __init__(self, stream: IO[bytes], *, rewinds: bool, limit: int | None) -> None:
        self._stream, self._limit = stream, limit
        self.counts = rewinds

    def rows(self, *, strict: bool = False) -> Iterator[Row]:
        """Go through them; a stream that cannot be read twice, once."""
        if self.counts:
            self._stream.seek(0)
        left = self._limit
        if left == 0:
            return
        for number, row in parse_questions(self._stream, strict=strict):
            yield number, row
            if left is not None and isinstance(row, Question):
                left -= 1
                if not left:
                    return


class ChosenQuestions:
    """Questions that are in memory.

    Args:
        rows: All of them.
    """

    counts = True

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def rows(self, *, strict: bool = False) -> Iterator[Row]:
        """Go through them."""
        for number, row in self._rows:
            if strict and isinstance(row, BadLine):
                msg = f"line {number}: {row.message}"
                raise InputError(msg)
            yield number, row
