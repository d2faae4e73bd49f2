"""Whether the delivered answer of a recording is one of its own samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["AnswerAmongSamples", "answer_among_samples"]

_NEARLY_EVERY = 0.98
_MOST_BY_CHANCE = 0.85
_DOUBT = 1e-3
_ENOUGH_SAMPLES = 3
_ENOUGH_ROWS = 20
_TINY = 1e-12

_Texts = list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAmongSamples:
    """How often ``main_answer`` is word for word one of the samples.

    Only questions whose samples differ are counted: where all are the same, nothing
    can be told.

    Attributes:
        rows: Questions whose samples differ.
        share: Share of them in which the answer is one of the samples.
        left_one_out: Mean share of their samples that another sample equals: how often
            one more draw comes among the others.
        at_most_once: Questions with at least three samples of which the answer equals
            none or exactly one.
        once: Those of them in which it equals exactly one.
        place: Where among the samples the answer nearly always stands, from 0; None
            where it has no such place.
        suspected: Whether the answer seems to have been taken from the samples.
    """

    rows: int
    share: float
    left_one_out: float
    at_most_once: int
    once: int
    place: int | None
    suspected: bool

    @property
    def warning(self) -> str | None:
        """What to tell a reader of figures, None where nothing is suspected."""
        if not self.suspected:
            return None
        where = "one of the samples" if self.place is None else f"sample {self.place}"
        return (
            f"main_answer seems to be {where}: it equals a sample in "
            f"{self.share:.0%} of {self.rows} questions whose samples differ, where "
            f"another sample does in {self.left_one_out:.0%}. It is then counted "
            "twice, and agrees with itself."
        )


def answer_among_samples(recordings: Iterable[Recording], /) -> AnswerAmongSamples:
    """Look for recordings whose answer was taken from the samples.

    Equal texts alone say nothing: a model that knows repeats itself, and a near greedy
    answer is the likeliest of all. Three signs remain, and any will do.

    An answer that comes at most once among at least three samples is an unlikely text.
    If it was drawn apart from them, it is often none of them: in real recordings it is
    exactly one in fewer than three of ten such questions; if it was taken from them,
    in all. It is suspected where it is in 98 % of them and more, and where chance would
    do so less than once in a thousand if it did in 85 % of all questions.

    So it is where every answer of at least twenty questions is one of the samples, and
    a greedy answer would be so less than once in a thousand, by how often two samples
    are equal. That tells of small files, and of two samples a question; not of files
    with so few different texts, as yes and no, that any answer is bound to come again.

    The order of the samples says nothing of an answer that was drawn apart, so that
    each place holds it equally often. It is suspected where one place holds it
    in 98 % of the questions, and chance would do so less than once in a thousand.

    Args:
        recordings: Recordings of one file; white space around a text is not looked at.

    Example:
        >>> rows = [
        ...     Recording(id="1", question="?", main_answer="a", samples=("a", "b")),
        ... ] * 30
        >>> answer_among_samples(rows).place
        0
    """
    every = [
        (row.main_answer.strip(), [sample.strip() for sample in row.samples])
        for row in recordings
    ]
    rows = [(answer, samples) for answer, samples in every if len(set(samples)) > 1]
    n = len(rows)
    among = [samples.count(answer) for answer, samples in rows]
    unlikely = [
        count
        for count, (_, samples) in zip(among, rows, strict=True)
        if count <= 1 and len(samples) >= _ENOUGH_SAMPLES
    ]
    once, rare = sum(unlikely), len(unlikely)
    place = _place(rows, among)
    taken = once >= _NEARLY_EVERY * rare and _tail(once, rare, _MOST_BY_CHANCE) < _DOUBT
    taken = taken or _all_hits(every, rows, among)
    return AnswerAmongSamples(
        rows=n,
        share=sum(count > 0 for count in among) / max(n, 1),
        left_one_out=sum(_repeated(samples) for _, samples in rows) / max(n, 1),
        at_most_once=rare,
        once=once,
        place=place,
        suspected=taken or place is not None,
    )


def _all_hits(every: _Texts, rows: _Texts, among: list[int]) -> bool:
    """Return whether all of enough answers are samples, and by more than chance.

    Chance is what a greedy answer would have, the likeliest of all, if all texts but it
    came once. How likely it is, is known from how often two samples are equal.
    """
    if len(rows) < _ENOUGH_ROWS or not all(among):
        return False
    different = len({sample for _, samples in rows for sample in samples})
    if different < _ENOUGH_ROWS:
        return False  # so few texts that an honest answer is bound to be one of them
    several = [samples for _, samples in every if len(samples) > 1]
    likeliest = math.sqrt(sum(map(_equal_pairs, several)) / len(several))
    log_chance = 0.0
    for _, samples in rows:
        all_it = likeliest ** len(samples)
        none_it = (1 - likeliest) ** len(samples)
        log_chance += math.log(max(1 - none_it - all_it, _TINY) / (1 - all_it))
    return log_chance < math.log(_DOUBT)


def _equal_pairs(samples: list[str]) -> float:
    n = len(samples)
    return sum(one * (one - 1) for one in Counter(samples).values()) / (n * (n - 1))


def _repeated(samples: list[str]) -> float:
    counts = Counter(samples)
    return sum(count for count in counts.values() if count > 1) / len(samples)


def _place(rows: list[tuple[str, list[str]]], among: list[int]) -> int | None:
    """Return the one place of the samples that holds the answer, None without one."""
    places = min((len(samples) for _, samples in rows), default=0)
    if not places:
        return None
    hits = [
        sum(samples[place] == answer for answer, samples in rows)
        for place in range(places)
    ]
    best = max(range(places), key=hits.__getitem__)
    chance = sum(
        count / len(samples) for count, (_, samples) in zip(among, rows, strict=True)
    ) / len(rows)
    if hits[best] < _NEARLY_EVERY * len(rows):
        return None
    # Any of the places could have been the one.
    return best if places * _tail(hits[best], len(rows), chance) < _DOUBT else None


def _tail(hits: int, n: int, chance: float) -> float:
    """Bound the probability of so many hits, each with this chance in the mean.

    Source:
        Hoeffding, Probability inequalities for sums of bounded random variables, 1963,
        theorem 1; the chances need not be equal.
    """
    if hits <= n * chance:
        return 1.0
    share = hits / n
    excess = share * math.log(share / chance)
    if share < 1:
        excess += (1 - share) * math.log((1 - share) / (1 - chance))
    return math.exp(-n * excess)
