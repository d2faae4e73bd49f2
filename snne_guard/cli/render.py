"""An assessment as a page for the terminal; readable without colours too."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from snne_guard.assess.judge import unusable
from snne_guard.cli._words import (
    DECISIONS,
    cost_in_words,
    decision_in_words,
    p_wrong_in_words,
    reasons_in_words,
)
from snne_guard.types import Assessment, FloatArray, Sample

__all__ = ["AssessmentView", "Group", "fold", "plain"]

_LONGEST = 160  # characters shown of a sample
_LARGEST = 26  # rows of a heat map; there are as many letters
_BAR = 40
_LEVELS = (0.05, 0.35, 0.65, 0.95)
_COLOURS = ("#30343f", "#3b528b", "#21918c", "#5ec962", "#fde725")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Replies with the same text.

    Attributes:
        text: What they say.
        members: Their positions, in ascending order.
    """

    text: str
    members: tuple[int, ...]


def fold(texts: Sequence[str]) -> tuple[Group, ...]:
    """Put equal texts together: the first one's group, then the others by size.

    Args:
        texts: The answer first, then the samples.

    Returns:
        Groups that hold every position once.

    Example:
        >>> [(g.text, len(g.members)) for g in fold(["a", "b", "c", "b", "a"])]
        [('a', 2), ('b', 2), ('c', 1)]
    """
    members: dict[str, list[int]] = {}
    for position, text in enumerate(texts):
        members.setdefault(plain(text), []).append(position)
    groups = [Group(text=text, members=tuple(m)) for text, m in members.items()]
    return tuple(groups[:1] + sorted(groups[1:], key=lambda g: -len(g.members)))


def plain(text: str) -> str:
    r"""Return a text on one line, without what could steer the terminal.

    Example:
        >>> plain("red \x1b[31m alert\n again")
        'red [31m alert again'
    """
    kept = (
        " " if unicodedata.category(character) in {"Cc", "Zl", "Zp"} else character
        for character in text
        if character not in _BIDI
    )
    return " ".join("".join(kept).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessmentView:
    """An assessment that rich can print.

    Attributes:
        assessment: What to show.
        delivered: Text that the application got in place of a withheld answer.
    """

    assessment: Assessment
    delivered: str | None = None

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        glyphs = _ASCII if options.ascii_only else _UNICODE
        groups = fold(self.assessment.scored)
        page = Table.grid(padding=(0, 2))
        page.add_column(style="bold", no_wrap=True, min_width=len("Similarity"))
        page.add_column(overflow="fold")
        page.add_row("Answer", self._answer())
        page.add_row("Replies", self._replies(groups, glyphs))
        matrix = self.assessment.matrix
        if matrix is not None:
            page.add_row("Similarity", _heat_map(matrix, groups, glyphs))
        if self.assessment.uncertainty is not None:
            page.add_row("Spread", _bar(self.assessment, glyphs))
        reading = p_wrong_in_words(self.assessment)
        if reading:
            page.add_row("Reading", Text(reading))
        page.add_row("Decision", self._decision())
        page.add_row("Cost", Text(cost_in_words(self.assessment.cost)))
        yield page

    def _answer(self) -> Text:
        answer = self.assessment.answer
        if answer is None:
            return Text("none came", style="red")
        text = Text(_says(answer), style="bold")
        if self.assessment.decision in {"refuse", "fallback"}:
            text.stylize("dim")
            text.append("  (withheld)", style="red")
        return text

    def _replies(self, groups: Sequence[Group], glyphs: _Glyphs) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(style="bold cyan")
        table.add_column(justify="right", style="cyan")
        table.add_column(overflow="fold")
        for letter, group in zip(_labels(len(groups)), groups, strict=True):
            count = f"{glyphs.times}{len(group.members)}"
            table.add_row(letter, count, Text(_cut(group.text, glyphs)))
        for (left, why), times in self._left_out().items():
            shown = Text(_cut(left, glyphs), style="dim")
            shown.append(f"  (not compared: {why})", style="yellow")
            table.add_row("-", f"{glyphs.times}{times}", shown)
        return table

    def _left_out(self) -> Counter[tuple[str, str]]:
        compared = Counter(self.assessment.scored)
        replies = self.assessment.samples
        if self.assessment.answer is not None:
            replies = (self.assessment.answer, *replies)
        left: Counter[tuple[str, str]] = Counter()
        for reply in replies:
            text = _says(reply, raw=True)
            if compared[text]:
                compared[text] -= 1
            else:
                why = unusable(reply, tool_calls="skip") or "not scored"
                left[plain(text), why.replace("_", " ")] += 1
        return left

    def _decision(self) -> Text:
        word, colour = DECISIONS[self.assessment.decision]
        text = Text(word, style=f"bold {colour}")
        text.append(f"  {decision_in_words(self.assessment)}", style="not bold default")
        reasons = reasons_in_words(self.assessment)
        if reasons:
            text.append(f"\nNote: {reasons}.", style="not bold yellow")
        if self.delivered is not None:
            text.append("\nDelivered instead: ", style="not bold default")
            text.append(plain(self.delivered), style="italic")
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Glyphs:
    """The characters of a page, for terminals with and without Unicode."""

    shades: tuple[str, str, str, str, str]
    full: str
    empty: str
    mark: str
    times: str
    ellipsis: str


_UNICODE = _Glyphs(
    shades=("·", "░", "▒", "▓", "█"),
    full="█",
    empty="─",
    mark="▲",
    times="×",  # noqa: RUF001 - the sign, as in 3 times
    ellipsis="…",
)
_ASCII = _Glyphs(
    shades=(".", "-", "+", "o", "#"),
    full="#",
    empty="-",
    mark="^",
    times="x",
    ellipsis="...",
)


def _says(sample: Sample, *, raw: bool = False) -> str:
    text = sample.text if sample.tool_calls is None else sample.tool_calls
    return text if raw else plain(text)


def _cut(text: str, glyphs: _Glyphs) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + glyphs.ellipsis


def _labels(count: int) -> list[str]:
    return [_LETTERS[i] if i < len(_LETTERS) else "*" for i in range(count)]


def _level(similarity: float) -> int:
    return sum(similarity >= bound for bound in _LEVELS)


def _heat_map(
    matrix: FloatArray, groups: Sequence[Group], glyphs: _Glyphs
) -> RenderableType:
    n = len(matrix)
    if n > _LARGEST:
        return Text(f"of {n} replies, too many to draw", style="dim")
    order = [
        (letter, position)
        for letter, group in zip(_labels(len(groups)), groups, strict=True)
        for position in group.members
    ]
    text = Text()
    text.append("  " + " ".join(letter for letter, _ in order) + "\n", style="cyan")
    for letter, row in order:
        text.append(f"{letter} ", style="cyan")
        for _, column in order:
            level = _level(float(matrix[row, column]))
            text.append(glyphs.shades[level] * 2, style=_COLOURS[level])
        text.append("\n")
    text.append("nothing in common ", style="dim")
    for shade, colour in zip(glyphs.shades, _COLOURS, strict=True):
        text.append(shade * 2, style=colour)
    text.append(" the same", style="dim")
    return text


def _bar(assessment: Assessment, glyphs: _Glyphs) -> Text:
    u = assessment.uncertainty or 0.0
    filled = round(u * _BAR)
    _, colour = DECISIONS[assessment.decision]
    text = Text("alike ", style="dim")
    text.append(glyphs.full * filled, style=f"not dim {colour}")
    text.append(glyphs.empty * (_BAR - filled))
    text.append(" different   ")
    text.append(f"u = {u:.2f}", style="not dim bold")
    if assessment.threshold is not None:
        kind = "certified" if assessment.certified else "uncalibrated"
        indent = len("alike ") + round(max(0.0, assessment.threshold) * _BAR)
        text.append("\n" + " " * indent + glyphs.mark, style="not dim")
        text.append(f" threshold {assessment.threshold:.2f}, {kind}")
    return text
