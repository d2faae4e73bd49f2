"""Whether delivered answers are right: labels, and graders that compare references."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from threading import current_thread, main_thread
from typing import Any, Protocol

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.evaluation.recordings import Recording
from snne_guard.similarity import rouge_l, stated_number, unicode_tokens
from snne_guard.text import without_reasoning

HOW_TO_GRADE = "grade by hand with snne-guard label, or by a program with --grader"
"""What to do about answers without a grade."""

_ABSTENTION = re.compile(
    r"(?:i |im )?(?:dont know|do not know|am not sure|not sure)|(?:it is )?unknown|"
    r"not (?:known|given|stated|mentioned|specified|provided|in context)|"
    r"(?:i |question )?(?:cant|cannot) (?:say|tell|answer|be (?:answered|determined))|"
    r"(?:not enough|insufficient) information|(?:there is )?no answer|unanswerable|na|"
)
"""Whole answers, normalised as SQuAD does, that decline to answer; an empty one too."""

_TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """How good a delivered answer is, and who says so.

    Attributes:
        quality: In [0, 1], 1 for the best.
        correct: 1 right, 0 wrong, None if the grader does not tell right from wrong.
        grader: Name of the grader.
    """

    quality: float
    correct: int | None
    grader: str


class Grader(Protocol):
    """Grades the delivered answers of recordings, at most 64 at a time."""

    def __call__(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        """Return one grade per recording, None if there is nothing to grade by."""
        ...


_AT_ONCE = 64

Measure = Callable[[str, Sequence[str]], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceGrader:
    """Grades by comparing an answer with the references in ``answers``.

    Reasoning at the start of an answer does not count. A recording without references
    has no grade. Where its question has no answer (``"answers": []``), only an answer
    that says so is right.

    Args:
        name: The label of its figures.
        measure: Takes an answer and its references and returns a quality in [0, 1];
            None if the answer cannot be compared with these references.
        threshold: Smallest quality that counts as right; None does not tell right from
            wrong.

    Example:
        >>> grader = ReferenceGrader(name="squad_f1", measure=squad_f1, threshold=0.5)
        >>> row = {"id": "1", "question": "?", "main_answer": "18 ", "samples": []}
        >>> grader([Recording.from_dict({**row, "answers": ["18"]})])
        [Grade(quality=1.0, correct=1, grader='squad_f1')]
    """

    name: str
    measure: Measure
    threshold: float | None = None

    def __call__(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        """Return one grade per recording, None if there is nothing to grade by."""
        return [self._grade(recording) for recording in recordings]

    def _grade(self, recording: Recording) -> Grade | None:
        quality: float | None = None
        answer = without_reasoning(recording.main_answer)
        if recording.answers:
            quality = self.measure(answer, recording.answers)
        elif recording.answers is not None:  # none is right
            quality = float(is_abstention(answer))
        if quality is None:
            return None
        correct = None if self.threshold is None else int(quality >= self.threshold)
        return Grade(quality=quality, correct=correct, grader=self.name)


def squad_f1(answer: str, references: Sequence[str], /) -> float:
    """Return the largest token F1 of an answer with any of the references.

    References that normalise to nothing are left out, unless all do. As in SQuAD's
    script, an F1 of one half can come out as 0.4999999999999999 and count as wrong,
    "18 apples" passes for "18", "18.0" becomes "180", and words of scripts without
    spaces stay whole.

    Source:
        The evaluation script of SQuAD 2.0 (Rajpurkar et al. 2018).

    Example:
        >>> squad_f1("It was Neil Armstrong", ["Neil Armstrong", "Armstrong"])
        0.6666666666666666
    """
    words = squad_normalised(answer).split()
    usable = [text for one in references if (text := squad_normalised(one))] or [""]
    return max(_token_f1(words, text.split()) for text in usable)


def word_f1(answer: str, references: Sequence[str], /) -> float:
    """Return the largest word F1 of an answer with any of the references.

    It is ``squad_f1`` for every script: words, whole numbers and symbols count, and
    trailing zeros after a point do not; an article counts where no word follows it, as
    in "option A". An answer that has numbers but none of the reference's scores 0, and
    so does one with other symbols. Scripts without spaces are compared by letters.

    Example:
        >>> word_f1("It costs $3.50.", ["$3.5"]), word_f1("C#", ["C++"])
        (0.6666666666666666, 0.0)
    """
    words = _words(answer)
    return max(_word_f1(words, each) for each in _usable(references))


def contains(answer: str, references: Sequence[str], /) -> float:
    """Return 1.0 if the answer contains the words of a reference in a row.

    It suits answers in whole sentences; it also passes an answer that denies the
    reference or names it beside something wrong. Words are those of ``word_f1``: in a
    script without spaces, a reference may also be found inside a longer word.
    """
    words = f" {' '.join(_words(answer))} "
    return float(any(f" {' '.join(each)} " in words for each in _usable(references)))


def rouge_l_f1(answer: str, references: Sequence[str], /) -> float:
    """Return the largest ROUGE-L F1 of an answer with any of the references.

    It is rouge-score's figure without a stemmer: its tokens are ``[a-z0-9]+`` alone,
    so a text in another script scores 0 with every other one.

    Source:
        rouge-score 0.1.2, as the paper grades summaries and translations.
    """
    return float(rouge_l([answer, *references], tokens="rouge")[0, 1:].max())


def numeric_match(answer: str, references: Sequence[str], /) -> float | None:
    """Return 1.0 if an answer ends with the number of one of the references, else 0.0.

    ``18.0``, ``$18``, ``18%`` and ``18 apples`` are the same; so are ``1,200`` and
    ``1200``, and ``1/2`` and ``0.5``; ``5%`` and five per mille are not. Differences of
    up to a millionth are ignored. None where no reference has a number.

    Example:
        >>> numeric_match("That makes $1,200.00.", ["1200"])
        1.0
    """
    numbers = (stated_number(text) for text in references)
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    stated = stated_number(answer)
    return float(stated is not None and any(_equal(stated, one) for one in known))


def _equal(stated: tuple[Fraction, str], known: tuple[Fraction, str]) -> bool:
    (one, sign), (other, its_sign) = stated, known
    same_sign = sign == its_sign or "" in {sign, its_sign}
    return same_sign and abs(one - other) <= _TOLERANCE * abs(other)


# An expression without these stands alone, and is read as LaTeX as a whole.
_MATH_IN_PROSE = re.compile(r"\$|\\boxed|\\[(\[]|(?<![\\a-zA-Z{])[^\W\d_]{3,}")


def math_verify() -> Measure:
    """Return a measure for ``ReferenceGrader``: equal mathematics, by math-verify.

    It reads LaTeX, sets, intervals and expressions, in prose where it is marked or is a
    number, and compares by value: 1.0 or 0.0, or None where no reference can be read.
    It gives up after five seconds, by a signal, so it runs in the main thread alone;
    elsewhere it raises math-verify's ValueError.

    Raises:
        MissingExtraError: The extra ``math`` is not installed.
    """
    try:
        from math_verify import parse, verify
        from math_verify.errors import TimeoutException
    except ModuleNotFoundError as error:
        needed = f"{error.name or 'math-verify'} (for grading mathematics)"
        raise MissingExtraError(needed, extra="math") from error

    def read(text: str) -> list[Any]:
        try:
            # Errors that it does not raise it logs, and the log quotes the answer.
            found: list[Any] = parse(text, raise_on_error=True)
        except TimeoutException:
            return []
        except Exception:
            if current_thread() is not main_thread():
                raise
            return []
        return found

    def expressions(text: str) -> list[Any]:
        alone = _MATH_IN_PROSE.search(text) is None
        return (read(f"${text}$") if alone else []) or read(text)

    def measure(answer: str, references: Sequence[str]) -> float | None:
        known = [found for each in references if (found := expressions(each))]
        if not known:
            return None
        stated = expressions(answer)
        return float(any(verify(each, stated) for each in known))

    return measure


def is_abstention(answer: str, /) -> bool:
    """Recognise an answer that is nothing but one of the usual ways of declining."""
    plain = squad_normalised(answer.replace("\u2019", "'"))
    return _ABSTENTION.fullmatch(plain) is not None


_MEASURES: dict[str, Measure] = {
    "squad_f1": squad_f1,
    "word_f1": word_f1,
    "contains": contains,
    "numeric": numeric_match,
    "rouge_l": rouge_l_f1,
}
_WITHOUT_VERDICT = {"rouge_l", "bert_score"}

GRADERS = (*_MEASURES, "math_verify", "bert_score")
"""Names of the graders. ``rouge_l`` and ``bert_score`` draw no line between right and
wrong; ``JudgeGrader`` needs a model and has no name here."""


def resolve_grader(name: str, /) -> Grader:
    """Return the grader of a name in ``GRADERS``.

    Raises:
        ConfigurationError: There is no such grader.
        MissingExtraError: A package that it needs is not installed.
    """
    if name not in GRADERS:
        msg = f"expected a grader among {GRADERS}, got {name!r}"
        raise ConfigurationError(msg)
    if name == "bert_score":
        from snne_guard.evaluation.model_graders import bert_score

        measure = bert_score()
    else:
        measure = math_verify() if name == "math_verify" else _MEASURES[name]
    threshold = None if name in _WITHOUT_VERDICT else 0.5
    return ReferenceGrader(name=name, measure=measure, threshold=threshold)


def graded(
    recordings: Iterable[Recording], grader: Grader | None = None, /
) -> Iterator[tuple[Recording, Grade | None]]:
    """Yield each recording with the grade of its delivered answer, None without one.

    Args:
        recordings: They are taken a few at a time, so they need not fit in memory.
        grader: Grades those without a label; None leaves them ungraded.

    Example:
        >>> row = {"question": "?", "main_answer": "a", "samples": []}
        >>> rows = [{**row, "id": "1", "label": 1}, {**row, "id": "2"}]
        >>> [grade for _, grade in graded(map(Recording.from_dict, rows))]
        [Grade(quality=1.0, correct=1, grader='label'), None]
    """
    rows = iter(recordings)
    while taken := list(islice(rows, _AT_ONCE)):
        grades = [None if row.label is None else _LABELLED[row.label] for row in taken]
        left = [at for at, row in enumerate(taken) if row.label is None]
        if grader is not None and left:
            given = grader([taken[at] for at in left])
            for at, grade in zip(left, given, strict=True):
                grades[at] = grade
        yield from zip(taken, grades, strict=True)


_LABELLED = [Grade(quality=float(n), correct=n, grader="label") for n in (0, 1)]


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def squad_normalised(text: str) -> str:
    """Return a text as SQuAD compares it: no case, ASCII punctuation, articles."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


# A capital A inside a clause, or alone on its line, names an option or a group.
_ENGLISH_ARTICLE = re.compile(
    r"(?<!\w)(?:a|an|An|AN|the|The|THE|(?<![\w,:] )A) +(?=[\w$\u20ac\u00a3\u00a5])"
)
_DASH = re.compile(r"\u2013(?!\d)|[\u2014\u2015]")
_INNER_STOP = re.compile(r"(?<=[^\W\d_])\.(?=[^\W\d_])")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(%?)")
_STARTS_NUMBER = re.compile(r"-?\d")
_IS_SYMBOL = re.compile(r"[\W_]+")


def _words(text: str) -> list[str]:
    """Return words, numbers and symbols of any script; "U.S." is one word."""
    bare = _INNER_STOP.sub("", _ENGLISH_ARTICLE.sub("", _DASH.sub(" ", text)))
    words: list[str] = []
    for token in unicode_tokens(bare):
        number = _NUMBER.fullmatch(token)
        if number is None:
            words.append(token.casefold())
        else:
            point = "." in number[1]
            words.append(number[1].rstrip("0").rstrip(".") if point else number[1])
            words += number[2]
    return words


def _usable(references: Sequence[str]) -> list[list[str]]:
    return [words for one in references if (words := _words(one))] or [[]]


def _word_f1(answer: list[str], reference: list[str]) -> float:
    for is_kind in (_STARTS_NUMBER.match, _IS_SYMBOL.fullmatch):
        kinds = [{*filter(is_kind, words)} for words in (answer, reference)]
        if all(kinds) and kinds[0].isdisjoint(kinds[1]):
            return 0.0
    common = (Counter(answer) & Counter(reference)).total()
    total = len(answer) + len(reference)
    return 2 * common / total if total else 1.0  # one division: a half is no less


def _token_f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    if not common:
        return 0.0
    precision, recall = common / len(answer), common / len(reference)
    return 2 * precision * recall / (precision + recall)
