"""Cuts an answer into sentences, list items, table rows and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, compress, pairwise
from typing import Any, NamedTuple

from snne_guard.errors import MissingExtraError

_LONGEST = 1_000
"""Characters of a part of prose; longer ones, without a full stop, are cut at a space,
so that time grows with the length of a text and not with its square."""

_WINDOW = 8_000
"""Characters that are cut into sentences at once: the time that takes is quadratic."""

_LEAVES = frozenset({"inline", "fence", "code_block", "tr_open"})
_CODE = frozenset({"fence", "code_block"})
_LINE_ENDS = re.compile(r"\r\n?")
_QUOTING = re.compile(r"[\s>]*")
_WRAPPED = re.compile(r"\n[\s>]*")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_MARKUP = re.compile(r"[*_~]{2,}|^[\s>#]+|\n[\s>]*")

# Where the English rules of sentencex cut too early: an ordinal or the number of a list
# item, an abbreviation before a number; and too late: a letter that is an answer.
_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,4}|[IVX]{2,6}|Chr)\.\s+$")
_ORDINAL = re.compile(
    r"(?:^|[:;,(]\s|\d\. (?:und|oder|bis) |(?<!\w)(?:(?<!i )am|im|vom|zum|zur|beim|"
    r"de[rmns]|die|das|(?:ein|kein|[mds]ein|ihr|unser|jed|dies)[a-z]*) )\d{1,3}\.\s+$",
    re.IGNORECASE,
)
_MONTH = re.compile(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|"
    r"November|Dezember)\b"
)
_BEFORE_NUMBER = re.compile(
    r"\b(?:[Ee]qn?s?|[Ff]igs?|[Cc]h|[Vv]ols?|[Ss]ecs?|Sect|[Nn]o?rs?|[Nn]os|[Kk]ap|[Bb]d|"
    r"[Aa]bb|[Aa]bs|[Tt]hm|Art|Tab|Def|Lem|Prop|Cor|Alg|App|Refs?|Ex|pp?|n[uú]m|[Cc]ap|Pos|approx|ca)"
    r"\.\s+$"
)
_LETTER = re.compile(
    r"(?:\b(?i:is|are|was|be|and|or|option|answer|choice|letter|type|group|ist|est)|\w)"
    r" [a-z]\. +(?=[A-Z])(?!\w\.)"
)
_SENTENCE_START = re.compile(
    r"(?:An?|All|And|Because|Both|But|For|He|However|I|If|In|It|Its|No|None|She|Since|So|"
    r"That|The|Then|There|These|They|This|We|When|You|Das|Der|Die|Er|Es|Sie)\b"
)
# Lines of their own: a label or bullet before text, or a few words without a mark.
_LABELLED = re.compile(
    r"(?:[^\W_a-z][^:\uff1a.!?]{0,30}|\w{1,20})(?::\s+|\uff1a\s*)\S|[\u2022\u2023\u25aa\u25cf\u25e6]|"
    r"\(?\w{1,2}\)\s"
)
_SHORT = re.compile(r"[^\W_].{0,40}(?<![.,;:!?\u3002\uff0c\uff1a])")
_MARKS = re.compile(r"[*_`>]+")


class Part(NamedTuple):
    """Where a part of a text begins, and where it ends."""

    start: int
    end: int


def cut(text: str, /) -> list[Part]:
    r"""Cut a text in Markdown, or in none, into what can be right or wrong by itself.

    Sentences, list items, headings and rows of tables are parts, and so are lines that
    stand as a list without bullets: "Name: value", or a few words. A block of code is
    one part. A part without a full stop is cut at a space after 1,000 characters.

    Args:
        text: In any script.

    Returns:
        Parts in order, which do not overlap. Every letter and digit of the text is in
        one, the numbers of list items excepted.

    Raises:
        MissingExtraError: The extra ``spans`` is not installed.

    Example:
        >>> text = "He was born in 1564. He wrote:\n\n1. Hamlet\n2. Macbeth"
        >>> [text[start:end] for start, end in cut(text)]
        ['He was born in 1564.', 'He wrote:', 'Hamlet', 'Macbeth']
    """
    parser, segment = cutters()
    # Of the same length, for the parser would shorten line ends.
    text = _LINE_ENDS.sub(lambda end: " \n"[-len(end[0]) :], text)
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    parts: list[Part] = []
    for first, last, kind, content in _blocks(parser.parse(text), lines):
        start, end = starts[first], min(starts[last], len(text))
        if kind == "inline" and not _MONTH.match(content):
            # Behind the bullet or number; that of a date is none.
            start = max(start, text.find(content, start, end))
        whole = _trimmed(text, start, end)
        if kind in _CODE:
            parts.append(whole)
            continue
        pieces = [whole]
        if kind != "tr_open":
            lines_of = _lines(text, whole)
            pieces = [s for line in lines_of for s in _sentences(text, line, segment)]
        parts += [part for piece in pieces for part in _bounded(text, piece)]
    return [part for part in parts if any(map(str.isalnum, text[slice(*part)]))]


@cache
def cutters() -> tuple[Any, Any]:
    """Return the reader of Markdown blocks and the cutter of sentences."""
    try:
        from markdown_it import MarkdownIt
        from sentencex import segment
    except ImportError as error:
        needed = f"{error.name} (for spans)"
        raise MissingExtraError(needed, extra="spans") from error
    parser = MarkdownIt("commonmark").enable("table")
    # What is disabled would hide text, or become a paragraph's mere underline.
    parser.disable(["reference", "html_block", "lheading"])
    parser.core.ruler.enableOnly(["block"])
    return parser, segment


def plain(text: str, /) -> str:
    """Return the text of a part without its Markdown; code stays as it is."""
    if text.startswith(("```", "~~~")):
        return text
    bare = _LINK.sub(r"\1", text).replace("|", " ")
    return _MARKUP.sub(lambda mark: " " if "\n" in mark[0] else "", bare)


def _blocks(tokens: list[Any], lines: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Yield the first line, the line after the last, the kind and the first words."""
    done = 0
    for token in tokens:
        if token.type not in _LEAVES or token.map[0] < done:  # a cell of a row
            continue
        first, last = token.map
        # Lines that the parser passes over, as where quotes are nested too deeply.
        yield from ((place, place + 1, "line", "") for place in range(done, first))
        yield first, last, token.type, token.content.partition("\n")[0]
        done = last
    yield from ((place, place + 1, "line", "") for place in range(done, len(lines)))


def _lines(text: str, whole: Part) -> list[Part]:
    """Return the lines of a paragraph where each is one of a list without bullets."""
    lines = text[slice(*whole)].split("\n")
    bare = [_MARKS.sub("", line).strip() for line in lines]
    labelled = [_LABELLED.match(line) is not None for line in bare]
    begins = [
        a or not line[:1].islower() for a, line in zip(labelled, bare, strict=True)
    ]
    if sum(labelled) <= 1 and not (all(begins) and all(map(_SHORT.fullmatch, bare))):
        return [whole]
    starts = accumulate((len(line) + 1 for line in lines[:-1]), initial=whole.start)
    firsts = compress(starts, [True, *begins[1:]])
    return [_trimmed(text, *pair) for pair in pairwise([*firsts, whole.end])]


def _mended(sentences: list[str]) -> Iterator[str]:
    """Yield sentences that go on behind a number or abbreviation as one."""
    whole = ""
    for sentence in sentences:
        if whole and not _goes_on(whole[-40:], sentence):
            yield from _answers_apart(whole)
            whole = ""
        whole += sentence
    yield from _answers_apart(whole)


def _goes_on(before: str, after: str) -> bool:
    if after[:1].isdigit() or after.startswith("("):
        return _BEFORE_NUMBER.search(before) is not None
    if not _NUMBER.search(before):
        return False
    return bool(after[:1].islower() or _ORDINAL.search(before) or _MONTH.match(after))


def _answers_apart(sentence: str) -> Iterator[str]:
    start = 0
    for letter in _LETTER.finditer(sentence):
        if len(letter[0].split()[0]) > 1 or _SENTENCE_START.match(
            sentence, letter.end()
        ):
            yield sentence[start : letter.end()]
            start = letter.end()
    yield sentence[start:]


def _sentences(text: str, whole: Part, segment: Any) -> Iterator[Part]:  # noqa: ANN401 - untyped
    """Yield the sentences of a paragraph, whose lines may be quoted."""
    view = _WRAPPED.sub(lambda end: " " * len(end[0]), text[slice(*whole)])
    place = 0
    while place < len(view):
        # "en" for its abbreviations; other scripts have full stops of their own.
        sentences = [*_mended(segment("en", view[place : place + _WINDOW]))]
        if place + _WINDOW < len(view):  # the last one may go on behind the window
            sentences = sentences[:-1] or sentences
        for sentence in sentences:
            start = whole.start + place
            # The view has spaces where the text has marks of quoting.
            first = start + len(sentence) - len(sentence.lstrip())
            yield Part(first, max(first, start + len(sentence.rstrip())))
            place += len(sentence)


def _trimmed(text: str, start: int, end: int) -> Part:
    end = start + len(text[start:end].rstrip())
    opening = _QUOTING.match(text, start, end)
    return Part(opening.end() if opening else start, end)


def _bounded(text: str, part: Part) -> Iterator[Part]:
    """Yield a part in pieces that are not too long, cut at a space where one is."""
    start, end = part
    while end - start > _LONGEST:
        space = text.rfind(" ", start + 1, start + _LONGEST)
        middle = space if space > 0 else start + _LONGEST
        yield _trimmed(text, start, middle)
        start = middle
    yield _trimmed(text, start, end)
