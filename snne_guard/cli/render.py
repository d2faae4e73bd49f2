"""An assessment as a page for the terminal; readable without colours too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from snne_guard.cost import Cost
from snne_guard.text import printable
from snne_guard.types import REASONS, Assessment, Decision, FloatArray

_LONGEST = 160  # characters shown of a sample
_BAR = 40
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = "*"  # of more groups than there are letters
_TIMES = "×"  # noqa: RUF001 - the sign
_SHADES = "·░▒▓█"
_LEVELS = (0.05, 0.35, 0.65, 0.95)
_COLOURS = ("#30343f", "#3b528b", "#21918c", "#5ec962", "#fde725")

_SHADED = ((-1, ""), (0.35, "black on yellow"), (0.65, "white on red"))
"""Above which uncertainty a sentence is shaded how."""

_DECISIONS: dict[Decision | None, tuple[str, str, str]] = {
    "accept": ("ACCEPTED", "green", "the answer is delivered"),
    "flag": ("FLAGGED", "yellow", "the answer is delivered, marked as uncertain"),
    "refuse": ("HELD BACK", "red", "the application gets a refusal instead"),
    "unscored": ("NOT SCORED", "yellow", "the answer is delivered without a score"),
    None: ("MEASURED", "cyan", "nothing is decided without a threshold"),
}
"""A word, its colour, and what follows; ``ask`` and ``demo`` have no fallback."""


def assessment_page(assessment: Assessment, *, refusal: str | None) -> Table:
    """Return an assessment as rich prints it, with the refusal that is delivered."""
    groups = _fold(assessment)
    page = Table.grid(padding=(0, 2))
    page.add_column(style="bold", no_wrap=True, min_width=len("Similarity"))
    page.add_column(overflow="fold")
    page.add_row("Answer", _answer(assessment))
    if assessment.spans and assessment.answer is not None:
        page.add_row("Sentences", _sentences(assessment.answer.text, assessment))
    page.add_row("Replies", _replies(assessment, groups))
    matrix, p_yes = assessment.matrix, assessment.self_check
    if matrix is not None and len(matrix) <= len(_LETTERS):
        page.add_row("Similarity", _heat_map(matrix, groups))
    if p_yes is not None and assessment.disagreement is not None:
        alone = f"where the replies alone have u = {assessment.disagreement:.2f}"
        page.add_row("Self-check", f"P(Yes) {p_yes:.2f}, {alone}")
    if assessment.uncertainty is not None:
        page.add_row("Spread", _bar(assessment, assessment.uncertainty))
    if assessment.grounded is not None:
        least = assessment.min_grounded
        limit = "" if least is None else f", at least {least:.2f} is accepted"
        page.add_row("Grounded", f"{assessment.grounded:.2f} in its documents{limit}")
    page.add_row("Decision", _decision(assessment, refusal))
    page.add_row("Cost", Text(cost_in_words(assessment.cost)))
    return page


def cost_in_words(cost: Cost) -> str:
    """Return requests, tokens, time and money in one line."""
    requests = f"{cost.calls} request{'' if cost.calls == 1 else 's'}"
    if cost.attempts > cost.calls:
        requests += f" of {cost.attempts} sent"
    least = "at least " if cost.lower_bound else ""
    cached = f" ({cost.cached_tokens} from a cache)" if cost.cached_tokens else ""
    money = f", price {least}{cost.money:.6f}" if cost.money else ""
    return (
        f"{requests}, {least}{cost.prompt_tokens} input tokens{cached}, "
        f"{least}{cost.completion_tokens} output tokens, {cost.seconds:.1f} s{money}"
    )


_Groups = Sequence[tuple[str, str, list[int]]]


def _fold(assessment: Assessment) -> _Groups:
    """Return letter, text and places of each text: the answer's, then the largest."""
    groups: dict[str, list[int]] = {}
    for position, text in enumerate(assessment.reply_set):
        groups.setdefault(_one_line(text), []).append(position)
    ordered = sorted(
        groups, key=lambda each: (0 not in groups[each], -len(groups[each]))
    )
    letters = _LETTERS.ljust(len(ordered), _OTHERS)
    return [(letters[at], text, groups[text]) for at, text in enumerate(ordered)]


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _answer(assessment: Assessment) -> Text:
    answer = assessment.answer
    if answer is None:
        return Text("none arrived", style="red")
    text = Text(_one_line(answer.tool_calls or answer.text), style="bold")
    if assessment.decision == "refuse":
        text.stylize("dim")
        text.append("  (withheld)", style="red")
    return text


def _sentences(answer: str, assessment: Assessment) -> Table:
    """Return each sentence with its uncertainty, shaded by it."""
    table = Table.grid(padding=(0, 1))
    spans = assessment.spans or ()
    heads = ["u", "said by"]
    heads += ["grounded"] if spans and spans[0].grounded is not None else []
    for _ in heads:
        table.add_column(style="cyan")
    table.add_column(overflow="fold")
    table.add_row(*heads, "")
    for span in spans:
        shade = [style for level, style in _SHADED if span.uncertainty > level][-1]
        text = Text(_cut(_one_line(answer[span.start : span.end])), style=shade)
        missing = [_one_line(answer[start:end]) for start, end in span.missing]
        text.highlight_words(missing, "underline")
        figures = [f"{span.uncertainty:.2f}", str(span.supported)]
        figures += [] if span.grounded is None else [f"{span.grounded:.2f}"]
        table.add_row(*figures, text)
    return table


def _replies(assessment: Assessment, groups: _Groups) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="bold cyan")
    table.add_column(justify="right", style="cyan")
    table.add_column(overflow="fold")
    for letter, text, places in groups:
        table.add_row(letter, f"{_TIMES}{len(places)}", Text(_cut(text)))
    replies = [each for each in (assessment.answer, *assessment.samples) if each]
    texts = Counter(_one_line(each.tool_calls or each.text) for each in replies)
    texts.subtract({text: len(places) for _, text, places in groups})
    for text, times in (+texts).items():
        shown = Text(_cut(text), style="dim")
        shown.append("  (not compared)", style="yellow")
        table.add_row("-", f"{_TIMES}{times}", shown)
    return table


def _heat_map(matrix: FloatArray, groups: _Groups) -> Text:
    order = [(letter, place) for letter, _, places in groups for place in places]
    text = Text()
    text.append("  " + " ".join(letter for letter, _ in order) + "\n", style="cyan")
    for letter, row in order:
        text.append(f"{letter} ", style="cyan")
        for _, column in order:
            level = sum(float(matrix[row, column]) >= bound for bound in _LEVELS)
            text.append(_SHADES[level] * 2, style=_COLOURS[level])
        text.append("\n")
    text.append("nothing in common ", style="dim")
    for shade, colour in zip(_SHADES, _COLOURS, strict=True):
        text.append(shade * 2, style=colour)
    text.append(" the same", style="dim")
    return text


def _bar(assessment: Assessment, u: float) -> Text:
    filled = round(u * _BAR)
    text = Text("alike ", style="dim")
    text.append("█" * filled, style=f"not dim {_DECISIONS[assessment.decision][1]}")
    text.append("─" * (_BAR - filled))
    text.append(" different   ")
    text.append(f"u = {u:.2f}", style="not dim bold")
    if assessment.threshold is not None:
        indent = len("alike ") + round(max(0.0, assessment.threshold) * _BAR)
        text.append("\n" + " " * indent + "▲", style="not dim")
        text.append(f" threshold {assessment.threshold:.2f}, uncalibrated")
    return text


def _decision(assessment: Assessment, refusal: str | None) -> Text:
    word, colour, follows = _DECISIONS[assessment.decision]
    text = Text(word, style=f"bold {colour}")
    text.append(f"  {follows}.", style="not bold default")
    reasons = [why for why in assessment.reasons if why != "no_threshold"]
    notes = "; ".join(REASONS.get(reason, reason) for reason in reasons)
    if notes:
        text.append(f"\nNote: {notes}.", style="not bold yellow")
    if assessment.decision == "refuse" and refusal is not None:
        text.append("\nDelivered instead: ", style="not bold default")
        text.append(_one_line(refusal), style="italic")
    return text
