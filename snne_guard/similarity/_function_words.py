"""Words that bind a sentence together, and such that alone may turn it round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType

__all__ = [
    "AGENTS",
    "AND",
    "ARTICLES",
    "BINDING",
    "CASES",
    "CONTRACTIONS",
    "COUNTRIES",
    "FUNCTION_WORDS",
    "GRAMMAR",
    "JOINTS",
    "LETTERS",
    "MODIFIERS",
    "NEGATIONS",
    "NUMBER_WORDS",
    "OPENERS",
    "OPPOSITES",
    "OR",
    "PARTICLES",
    "PARTS_OF_NEGATIONS",
    "QUALIFIERS",
    "RESERVES",
    "SPELLINGS",
    "THAN",
    "UNITS",
    "YES",
    "language_of",
    "languages_in",
    "most_frequent",
]


def _lists() -> dict[str, list[str]]:
    """Return the words of each list of ``words.txt``, in order."""
    lists: dict[str, list[str]] = {}
    found: list[str] = []
    source = files("snne_guard.similarity") / "words.txt"
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.endswith(":"):
            found = lists[line[:-1]] = []
        elif not line.startswith("#"):
            found += line.split()
    return lists


_LISTS = _lists()


def _by_language(kind: str) -> Mapping[str, frozenset[str]]:
    named = (key.split(".") for key in _LISTS if key.startswith(f"{kind}."))
    return MappingProxyType(
        {code: frozenset(_LISTS[f"{kind}.{code}"]) for _, code in named}
    )


FUNCTION_WORDS = _by_language("function")
"""Articles, pronouns, auxiliaries, prepositions and conjunctions, casefolded, by the
language's code."""

GRAMMAR = frozenset[str]().union(*FUNCTION_WORDS.values())
"""The function words of all the languages."""

OR = _by_language("or")
"""What stands between choices that a question offers, by the language's code; ``*`` is
any language."""

NEGATIONS = frozenset(_LISTS["negations"])
"""Words that turn a statement round, of all the languages."""

PARTS_OF_NEGATIONS = tuple(_LISTS["negation.parts"])
"""What turns a statement round inside a word, or as several tokens."""

YES = frozenset(_LISTS["yes"])
"""Words that affirm, of all the languages."""

CONTRACTIONS: Mapping[str, str] = MappingProxyType(
    dict(one.split("=") for one in _LISTS["contractions"])
)
"""What stands before ``'t`` in English, and what it is short for."""

OPPOSITES = frozenset(_LISTS["opposites"])
"""Words with a counterpart that says the contrary."""

QUALIFIERS = frozenset(_LISTS["qualifiers"])
"""Words that make another statement of a number, also where one answer alone has
them."""

SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        word: key.removeprefix("spelling.")
        for key, words in _LISTS.items()
        if key.startswith("spelling.")
        for word in words
    }
)
"""Other spellings of a unit behind a number."""

RESERVES = frozenset(_LISTS["reserves"])
"""Words of which an answer with them says another thing than the same without."""

LETTERS = frozenset(_LISTS["letters"])
"""Words of one letter, of all the languages."""

MODIFIERS = frozenset(_LISTS["modifiers"])
"""Words that change what they stand before."""

THAN = _by_language("than")
"""What stands before that with which something is compared, by the language's code."""

OPENERS = frozenset(_LISTS["openers"])
"""What a clause begins with that may stand in front of a sentence or behind it."""

COUNTRIES = frozenset(_LISTS["countries"])
"""Words that name a country."""

PARTICLES = frozenset(_LISTS["particles"])
"""Words that belong to the verb where they end a clause."""

CASES = frozenset(_LISTS["cases"])
"""Articles that say who does something and to whom it is done."""

AGENTS = _by_language("agent")
"""What stands before the doer in a passive sentence, by the language's code."""

JOINTS = _by_language("joint")
"""What makes one name of two, by the language's code."""

ARTICLES = frozenset(_LISTS["articles"])
"""What may stand before an item of a list, of all the languages."""

AND = _by_language("and")
"""What stands before the last item of a list, by the language's code; ``*`` is any."""

UNITS = frozenset(_LISTS["units"]) | frozenset(SPELLINGS.values())
"""What a number counts or measures: five miles are not five kilometres."""

NUMBER_WORDS: Mapping[str, str] = MappingProxyType(
    {word: str(number) for number, word in enumerate(_LISTS["numbers"], 2)}
)
"""English words for small numbers to their digits, without "one", which is a pronoun as
often."""

_KINDS = ("place", "verb", "person")


def _binding(code: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for kind in _KINDS:
        for one in _LISTS.get(f"{kind}.{code}", ()):
            first, *others = one.split("=")
            for form in (first, *others):
                found[form] = (*found.get(form, ()), (kind, first))
    return MappingProxyType(found)


BINDING = MappingProxyType({code: _binding(code) for code in FUNCTION_WORDS})
"""Words of grammar of which one for another makes another statement, by the language's
code: to the kinds of each, and which of its kind it is."""

_LANGUAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        word: tuple(code for code, words in FUNCTION_WORDS.items() if word in words)
        for word in GRAMMAR
    }
)


def language_of(words: Iterable[str]) -> str | None:
    """Return the language whose function words a text has most of.

    Args:
        words: The casefolded words.

    Returns:
        The language's code; None where two have as many, or none has any.

    Example:
        >>> language_of("what is the capital of france".split())
        'en'
        >>> language_of(["paris"]) is None
        True
    """
    return most_frequent(languages_in(words))


def languages_in(words: Iterable[str]) -> Counter[str]:
    """Return how many function words of each language there are.

    Example:
        >>> languages_in("who is in berlin".split())["en"]
        3
    """
    return Counter([code for word in words for code in _LANGUAGES.get(word, ())])


def most_frequent(languages: Counter[str]) -> str | None:
    """Return the language that was counted most often, None where no one was."""
    ranked = languages.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]
