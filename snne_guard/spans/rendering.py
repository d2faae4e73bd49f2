"""An answer with its uncertain parts marked."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, get_args

from snne_guard.checks import check_choice
from snne_guard.decision.policy import Policy
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.text import printable
from snne_guard.types import Span

MarkedForm = Literal["plain", "markdown", "html", "terminal"]

_YELLOW, _RESET = "\x1b[30;43m", "\x1b[0m"


def render_marks(
    text: str,
    spans: Sequence[Span],
    *,
    threshold: float | None = None,
    min_grounded: float | None = None,
    form: MarkedForm = "plain",
) -> str:
    """Return a copy of an answer in which uncertain and unsupported parts are marked.

    Args:
        text: The delivered text that the spans belong to.
        spans: Its parts, in order.
        threshold: Largest uncertainty of a part that is not marked; None: no limit.
        min_grounded: Least ``grounded`` of a part that is not marked; None: no limit.
        form: ``"plain"`` and ``"markdown"`` put ``[?]`` after a part, and into the
            last cell of a table row. ``"html"`` escapes the text and puts a part into
            ``<mark>``; show it with ``white-space: pre-wrap``. ``"terminal"`` uses a
            yellow background, and shows control characters of the text as pictures.

    Raises:
        InputError: A span is not in the text, or not after the one before it.
        ConfigurationError: A limit or the form makes no sense, or there is no limit.

    Example:
        >>> spans = [Span(start=0, end=4, uncertainty=0.9, supported=0)]
        >>> render_marks("Oak. Elm.", spans, threshold=0.5)
        'Oak. [?] Elm.'
    """
    check_choice(form, get_args(MarkedForm), what="form")
    escape: Callable[[str], str] = html.escape if form == "html" else str
    if form == "terminal":
        escape = partial(printable, lines=True)
    if threshold is None and min_grounded is None:
        msg = "expected a threshold or min_grounded, got none"
        raise ConfigurationError(msg)
    limits = Policy(threshold=threshold, min_grounded=min_grounded)
    pieces: list[str] = []
    done = 0
    for span in spans:
        if not done <= span.start <= span.end <= len(text):
            msg = f"expected spans of this text in order, got {span}"
            raise InputError(msg)
        pieces.append(escape(text[done : span.start]))
        part, done = text[span.start : span.end], span.end
        verdict = limits.scored(span.uncertainty, grounded=span.grounded)
        if verdict.decision == "accept":
            pieces.append(escape(part))
        elif form == "html":
            title = f"uncertainty {span.uncertainty:.2f}"
            if span.grounded is not None:
                title += f", grounded {span.grounded:.2f}"
            pieces.append(f'<mark title="{title}">{escape(part)}</mark>')
        elif form == "terminal":
            # Line by line, for some terminals colour the rest of a line.
            lines = escape(part).split("\n")
            pieces.append("\n".join(f"{_YELLOW}{line}{_RESET}" for line in lines))
        else:
            pieces.append(_noted(part, r"\[?\]" if form == "markdown" else "[?]"))
    return "".join([*pieces, escape(text[done:])])


def _noted(part: str, note: str) -> str:
    """Return a part with a note that does not break a table or a block of code."""
    if part.startswith(("```", "~~~")):
        return f"{part}\n{note}"
    if part.startswith("|") and part.endswith("|"):
        return f"{part[:-1].rstrip()} {note} |"
    return f"{part} {note}"
