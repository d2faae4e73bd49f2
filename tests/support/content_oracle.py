"""Content F1 as its documentation says it, word by word and slowly."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator

from snne_guard.similarity._content_differs import differ, fronted, in_capitals
from snne_guard.similarity._content_notation import Notation
from snne_guard.similarity._content_question import Question
from snne_guard.similarity._content_side import Side
from snne_guard.similarity._content_wording import Wording
from snne_guard.similarity._content_words import Answer
from snne_guard.similarity._function_words import (
    CONTRACTIONS,
    FUNCTION_WORDS,
    GRAMMAR,
    NUMBER_WORDS,
    QUALIFIERS,
    SPELLINGS,
    UNITS,
    language_of,
)
from snne_guard.similarity.tokens import unicode_tokens


def slow_spelling(text: str) -> str:
    """Return a text with abbreviations, dates and lists spelled in one way."""
    text = re.sub(
        r"\b(?:[^\W\d_]\. ?){2,}",
        lambda found: found[0].replace(".", "").replace(" ", "") + " ",
        text,
    )
    text = re.sub(r"(?<=[\w)]) - (?=(?:\d|\w\b|\())", " minus ", text)
    for short, full in CONTRACTIONS.items():
        text = re.sub(
            rf"\b{short}['\u2019]t\b", f"{full} not", text, flags=re.IGNORECASE
        )
    for month in calendar.month_name[1:]:
        short = "Sept|Sep" if month == "September" else month[:3]
        name = rf"(?:{month}|{short})"
        text = re.sub(
            rf"\b(\d\d?)(?:st|nd|rd|th)?(?: of)? {name}\b", rf"{month} \1", text
        )
    for month in calendar.month_name[1:]:
        short = "Sept|Sep" if month == "September" else month[:3]
        name = rf"(?:{month}|{short})"
        text = re.sub(rf"\b{name}\.? (\d\d?)(?:st|nd|rd|th)?\b", rf"{month} \1", text)
    lines = re.split(r"(\n)", text)
    numbered = [bool(re.match(r"[ \t]*\d\d?[.)][ \t]+\S", line)) for line in lines]
    if sum(numbered) > 1:
        text = "".join(
            re.sub(r"^[ \t]*\d\d?[.)][ \t]+", "", line) if is_item else line
            for line, is_item in zip(lines, numbered, strict=True)
        )
    return text


def slow_words(text: str) -> list[str]:
    """Words of a text, numbers, units and negations spelled in one way."""
    words = unicode_tokens(slow_spelling(text))
    found: list[str] = []
    before, held, measured = "", "", False
    for place, word in enumerate(words):
        if any(map(str.isdigit, word)):
            share = word[-1] if word[-1] in "%\u2030" else ""
            bare = word.removesuffix(share) if share else word
            if bare.count(".") == 1:
                bare = re.sub(r"(?<=\d)\.0+(?!\d)", "", bare)
                unit = words[place + 1] if place + 1 < len(words) else ""
                amount = before in {*"$€£¥₹"} or unit in UNITS
                if share or amount or len(bare.partition(".")[0]) > 2:
                    bare = re.sub(r"(\.\d*?[1-9])0+(?!\d)", r"\1", bare)
            found += [part for part in (bare, share, held) if part]
            held, measured = "", True
        elif word == "$" and not held:
            held = word
        elif word == "cannot":
            found += ["can", "not"]
        else:
            unit = SPELLINGS.get(word, word) if measured else word
            measured = word in NUMBER_WORDS or (measured and unit in UNITS)
            found.append(NUMBER_WORDS.get(unit, unit))
        before = word
    return [*found, held] if held else found


def slow_names(text: str) -> Iterator[str]:
    """Words with the capital of a name."""
    before, end = "", 0
    for found in re.finditer(r"[^\W\d_]+", text):
        word = found[0]
        if word[0].isupper():
            gap = text[end : found.start()]
            starts = not before or re.search(r"[.!?:\n\u3002]", gap) is not None
            pronoun = word == "I" and not before[:1].isupper()
            closed = word.casefold() in GRAMMAR
            if not closed or not (starts or text.isupper() or pronoun):
                yield word.casefold()
        before, end = word, found.end()


def slow_content_f1(one: str, other: str, question: str | None) -> float:
    """Return how alike two answers are."""
    left, right, asked = Answer.read(one), Answer.read(other), Question.read(question)
    rewritten = Notation.read(one).differs(Notation.read(other))
    if left.tokens == right.tokens or fronted(left, right):
        return 0.5 if rewritten or in_capitals(left, right) else 1.0
    if not left.tokens or not right.tokens:
        return 0.0
    language = asked.language or language_of([*left.tokens, *right.tokens])
    function = frozenset[str]() if language is None else FUNCTION_WORDS[language]
    shared = {word for word in asked.words if word in left.words & right.words}
    if _in_order(left, shared) != _in_order(right, shared):
        shared = set()
    heavy = left.essential | right.essential | left.names | right.names | asked.offered

    def weight(word: str) -> int:
        if word in shared:
            return 2
        if word in heavy:
            return 24
        return 1 if word in function else 8

    a = [(word, weight(word)) for word in left.tokens]
    b = [(word, weight(word)) for word in right.tokens]
    if len(a) + len(b) > 2000:
        coarse = [[(word, n // 8) for word, n in side] for side in (a, b)]
        if all(sum(n for _, n in side) for side in coarse):
            a, b = coarse
    common = slow_heaviest(a, b)
    x, y = sum(n for _, n in a), sum(n for _, n in b)
    found = common / (x + y) + common / min(x, y) / 2
    grammar = GRAMMAR if language is None else function
    signs = _signs(left, right, asked, grammar)
    mine, theirs = (
        Side(answer, Wording.read(answer, language), _news(answer, grammar), language)
        for answer in (right, left)
    )
    if not signs and found > 0.5 and (rewritten or differ(mine, theirs, asked)):
        return 0.5
    return found * 0.5**signs


def _news(answer: Answer, grammar: frozenset[str]) -> frozenset[str]:
    told = answer.names | answer.essential
    return frozenset(word for word in answer.words if word not in grammar - told)


def slow_heaviest(left: list[tuple[str, int]], right: list[tuple[str, int]]) -> int:
    """Weight of the heaviest common subsequence, by the table of all beginnings."""
    best = [0] * (len(right) + 1)
    for word, weight in left:
        last = best
        best = [0]
        for j, (other, _) in enumerate(right):
            met = last[j] + weight if word == other else 0
            best.append(max(last[j + 1], best[j], met))
    return best[-1]


def _in_order(answer: Answer, words: set[str]) -> list[str]:
    found: list[str] = []
    for word in answer.tokens:
        if word in words and word not in found:
            found.append(word)
    return found


def _signs(
    left: Answer, right: Answer, asked: Question, function: frozenset[str]
) -> int:
    a, b = list(left.numbers), list(right.numbers)
    each = bool(set(a) - set(b)) and bool(set(b) - set(a))
    first = (
        left.negated != right.negated
        or any(
            (word in left.words) != (word in right.words) and word not in asked.words
            for word in QUALIFIERS
        )
        or each
        or (a != b and sorted(a) == sorted(b))
    )

    def news(one: Answer, other: Answer) -> bool:
        return any(
            word not in other.words
            and (word not in function or word in one.names or word in one.essential)
            for word in one.words
        )

    return int(first) + int(news(left, right) and news(right, left))
