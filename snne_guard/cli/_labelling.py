"""Grading answers by hand: what is shown, and what each key does."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from snne_guard.cli._console import one_line
from snne_guard.cli._keys import Keys
from snne_guard.evaluation import Recording
from snne_guard.evaluation.labelling.labels import (
    Label,
    Labels,
    Order,
    answer_digest,
)
from snne_guard.evaluation.labelling.store import LabelStore

__all__ = ["KEYS", "Labelling", "count_labels"]

Verdict = Literal[0, 1] | None

_VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys("ry1", 1),
    **dict.fromkeys("wn0", 0),
    **dict.fromkeys("s ", None),
}
_BACK, _KEEP, _CONTEXT, _HELP, _QUIT = "b\x7f\x08", "k", "c", "?h", "q"
_WORDS: dict[Verdict, tuple[str, str]] = {
    1: ("right", "green"),
    0: ("wrong", "red"),
    None: ("skipped", "yellow"),
}
_CONTEXT_SHOWN = 1200

KEYS = "r right   w wrong   s skip   b back   c all of the context   ? help   q quit"
"""The keys, in a line."""

_EXPLAINED = f"""\
{KEYS}
Right (also y, 1) or wrong (n, 0): is the answer what the application should have
given? Skip (or space) where you cannot tell; calibrate says how many those are.
Back goes to the answer before; its new label takes the place of the old one, and k
keeps it. Each label is on the disk at once. Quit, and go on whenever you like.
"""


@dataclass(slots=True, kw_only=True)
class Labelling:
    """One sitting: shows answer after answer and writes what is said of each.

    Neither uncertainty nor samples are shown: who sees them grades by them.

    Attributes:
        store: Where labels go.
        before: Answers that have a label, in the order in which they got it.
        asked: Answers to ask for, in order.
        order: How they were picked.
        seed: Of the random order.
        keys: Where keys come from.
        console: What is shown on.
    """

    store: LabelStore
    before: Sequence[Recording]
    asked: Sequence[Recording]
    order: Order
    seed: int
    keys: Keys
    console: Console
    _trail: list[Recording] = field(init=False)
    _left: deque[Recording] = field(init=False)

    def __post_init__(self) -> None:
        self._trail, self._left = list(self.before), deque(self.asked)

    def run(self) -> None:
        """Ask until nothing is left, or somebody quits.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; every label so far is kept.
            OSError: A label cannot be written.
        """
        at = len(self._trail)
        shown: Recording | None = None
        while at < len(self._trail) or self._left:
            back = at < len(self._trail)
            current = self._trail[at] if back else self._left[0]
            if current is not shown:
                self._show(current)
                shown = current
            key = self.keys.next()
            if key is None or key in _QUIT:
                return
            if key in _VERDICTS:
                self._label(current, _VERDICTS[key], back=back)
                at = len(self._trail)
            elif back and key in _KEEP:
                at = len(self._trail)
            elif key in _BACK and at:
                at -= 1
            else:
                self._tell(key, current)

    def _label(self, row: Recording, verdict: Verdict, *, back: bool) -> None:
        # An answer that is looked at again was picked as it was picked then.
        then = self.store.labels.of(row) if back else None
        self.store.add(
            Label(
                id=row.id,
                label=verdict,
                answer=answer_digest(row),
                order=self.order if then is None else then.order,
                seed=self.seed if then is None else then.seed,
            )
        )
        if not back:
            self._trail.append(self._left.popleft())
        word, colour = _WORDS[verdict]
        self.console.print(Text(word, style=f"bold {colour}"))

    def _tell(self, key: str, row: Recording) -> None:
        if key in _CONTEXT and row.context:
            told = _lines(row.context)
        elif key in _BACK:
            told = "this is the first one"
        else:
            told = _EXPLAINED if key in _HELP else KEYS
        self.console.print(Text(told), soft_wrap=True)

    def _show(self, row: Recording) -> None:
        self.console.print(Rule(Text(self._progress()), align="left", style="dim"))
        page = Table.grid(padding=(0, 2))
        page.add_column(style="dim", no_wrap=True)
        page.add_column(overflow="fold")
        for name, text in _parts(row):
            page.add_row(name, Text(text, style="bold" if name == "Answer" else ""))
        self.console.print(page)
        if (said := self.store.labels.of(row)) is not None:
            word, colour = _WORDS[said.label]
            note = Text.assemble("so far ", (word, colour), "   k keeps it")
            self.console.print(note)
        self.console.print(Text(KEYS, style="dim"), soft_wrap=True)

    def _progress(self) -> str:
        counts = count_labels(self.store.labels, [*self._trail, *self._left])
        return ", ".join(f"{n} {word}" for word, n in counts.items())


def count_labels(labels: Labels, rows: Sequence[Recording], /) -> dict[str, int]:
    """Return how many answers are right, wrong, skipped and left."""
    said = [labels.of(row) for row in rows]
    found = Counter(_WORDS[one.label][0] for one in said if one is not None)
    counts = {word: found[word] for word, _ in _WORDS.values()}
    return {**counts, "left": sum(one is None for one in said)}


def _parts(row: Recording) -> Iterator[tuple[str, str]]:
    if row.context:
        yield "Context", _clipped(row.context)
    yield "Question", _lines(row.question or "(there was none)")
    if row.answers is not None:
        known = "\n".join(map(_lines, row.answers)) or "(it has no answer)"
        yield "Reference", known
    yield "Answer", _lines(row.main_answer) if row.main_answer.strip() else "(empty)"


def _clipped(text: str) -> str:
    told = _lines(text)
    if len(told) <= _CONTEXT_SHOWN:
        return told
    return f"{told[:_CONTEXT_SHOWN]}… (c shows all of it)"


def _lines(text: str) -> str:
    """Return a text of anyone's that does nothing to a terminal but stand there."""
    lines = text.expandtabs(4).splitlines()
    return "\n".join(map(one_line, lines))
