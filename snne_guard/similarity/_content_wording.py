"""How an answer is worded: what binds its words, its phrases and its lists."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snne_guard.similarity._content_words import Answer, canonical_words
from snne_guard.similarity._function_words import (
    AGENTS,
    AND,
    ARTICLES,
    BINDING,
    FUNCTION_WORDS,
    GRAMMAR,
    JOINTS,
    OR,
    PARTICLES,
)

__all__ = ["Wording"]

_NO_WORDS = frozenset[str]()
_NOTHING = dict[str, tuple[tuple[str, str], ...]]()
_MARK = re.compile(
    r"""[,;:!?](?=\s|$) | [()\[\]{}"\u201c\u201d\n\u3001\u3002\uff0c]
        | (?<=\w\w)\.(?=\s) | \s[-\u2013\u2014]\s""",
    re.VERBOSE,
)
_COMPOUND = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+(?![\w-])")
_LAST = re.compile(r"([^\W\d_]+) ([^\W\d_]+)(?=[.,;:!?)]|\s*$)")
_PARTED = "\x00"  # before a mark, so that it is no word
_COMMA = f"{_PARTED},"


@dataclass(frozen=True, slots=True)
class Wording:
    """How one answer is worded.

    Attributes:
        binding: Prepositions, auxiliary verbs and persons, by kind and word, with how
            often they are there.
        persons: The persons in order.
        passive: What may say that the doer comes last: an auxiliary verb and a word
            such as "by".
        phrases: The runs of words that neither a mark nor grammar parts.
        lists: The items of each list that an "and" or an "or" ends.
        compounds: The parts of each word with a hyphen.
        particles: What ends a clause and belongs to the verb, behind the word before.
    """

    binding: Counter[tuple[str, str]]
    persons: tuple[str, ...]
    passive: bool
    phrases: frozenset[tuple[str, ...]]
    lists: tuple[tuple[tuple[str, ...], ...], ...]
    compounds: frozenset[tuple[str, ...]]
    particles: frozenset[tuple[str, str]]

    @classmethod
    def read(cls, answer: Answer, language: str | None) -> Wording:
        """Return how an answer in a language is worded.

        Example:
            >>> answer = Answer.read("The kings of Rome, and Carthage, paid 5 talents")
            >>> wording = Wording.read(answer, "en")
            >>> sorted(wording.phrases)
            [('carthage',), ('kings', 'rome'), ('paid', '5', 'talents')]
            >>> wording.lists
            ((('kings', 'rome'), ('carthage',), ('paid', '5', 'talents')),)
        """
        binding = BINDING.get(language or "", _NOTHING)
        bound = [one for word in answer.tokens for one in binding.get(word, ())]
        agents = AGENTS.get(language or "", _NO_WORDS)
        runs = _runs(answer, language)
        return cls(
            binding=Counter(bound),
            persons=tuple(who for kind, who in bound if kind == "person"),
            passive=not agents.isdisjoint(answer.words)
            and any(kind == "verb" for kind, _ in bound),
            phrases=frozenset(run for _, run in runs),
            lists=tuple(_lists(runs, _marks(language))),
            compounds=frozenset(_compounds(answer.text)),
            particles=frozenset(_particles(answer)),
        )


def _compounds(text: str) -> Iterator[tuple[str, ...]]:
    if "-" in text:
        for found in _COMPOUND.findall(text):
            yield tuple(found.casefold().split("-"))


def _particles(answer: Answer) -> Iterator[tuple[str, str]]:
    if not PARTICLES.isdisjoint(answer.words):
        for before, word in _LAST.findall(answer.text):
            if word.casefold() in PARTICLES:
                yield before.casefold(), word.casefold()


@functools.cache
def _closed(language: str | None) -> frozenset[str]:
    """Return the words that part two runs."""
    grammar = GRAMMAR if language is None else FUNCTION_WORDS[language]
    return grammar | _marks(language)


@functools.cache
def _marks(language: str | None) -> frozenset[str]:
    """Return what stands before the last item of a list."""
    code = language or ""
    return _NO_WORDS.union(
        *(words.get(key, _NO_WORDS) for words in (AND, OR) for key in ("*", code))
    )


def _runs(
    answer: Answer, language: str | None
) -> list[tuple[frozenset[str], tuple[str, ...]]]:
    """Return the runs of words with what parts each of them from the one before."""
    grammar = _closed(language)
    joints = JOINTS.get(language or "", _NO_WORDS)
    runs: list[tuple[frozenset[str], tuple[str, ...]]] = []
    run: list[str] = []
    between, joined = {_PARTED}, False  # nothing is before the first
    for word in _words_and_marks(answer.text):
        if word in joints and run:
            joined = True  # and so is what comes next, be it an article
        elif word in answer.names or not (word in grammar or word[0] == _PARTED):
            joined = False
            run.append(word)
        elif joined and word in ARTICLES:
            joined = False
        else:
            if run:
                runs.append((frozenset(between), tuple(run)))
                run, between = [], set[str]()
            joined = False
            between.add(word)
    if run:
        runs.append((frozenset(between), tuple(run)))
    return runs


def _words_and_marks(text: str) -> Iterator[str]:
    """Give the words of a text, and a comma or another mark where one parts them."""
    start = 0
    for mark in _MARK.finditer(text):
        yield from canonical_words(text[start : mark.start()])
        yield f"{_PARTED}{mark[0].strip()}"
        start = mark.end()
    yield from canonical_words(text[start:])


def _lists(
    runs: Sequence[tuple[frozenset[str], tuple[str, ...]]], marks: frozenset[str]
) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Give the lists: runs that commas part, and an "and"."""
    items: list[tuple[str, ...]] = []
    ends = False
    for between, run in runs:
        if not between - ARTICLES <= marks | {_COMMA}:
            if ends:
                yield tuple(items)
            items, ends = [], False
        items.append(run)
        ends = ends or not between.isdisjoint(marks)
    if ends:
        yield tuple(items)
