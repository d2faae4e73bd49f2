"""Whether the delivered answer of a recording is one of its own samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["AnswerAmongSamples", "answer_among_samples"]

_NEARLY_EVERY = 0.98
_MOST_BY_CHANCE = 0.85
_DOUBT = 1e-3
_ENOUGH_SAMPLES = 3
_ENOUGH_ROWS = 20
_TWICE = 2

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

    It is one of them more often than chance allows. Whatever the answer, it misses all
    n samples at least as often as the likeliest text would, (1 - q)^n, and by how often
    two samples are equal q is known from above. It is suspected where 98 % of at least
    twenty answers and more are among their samples, and chance would do so less than
    once in a thousand. That tells of small files, of two samples a question, and of
    answers of few kinds, such as yes and no.

    An answer that comes at most once among at least three samples is an unlikely text.
    If it was drawn apart from them, it is often none of them: in real recordings it is
    exactly one in fewer than three of ten such questions; if it was taken from them,
    in all. It is suspected where it is in 98 % of them and more, and where chance would
    do so less than once in a thousand if it did in 85 % of all questions. That tells of
    likely texts too, but is no sign where the samples themselves, each compared with
    the others, are so in more than 85 %: of texts as few as yes and no any one comes
    again.

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
    taken = (
        once >= _NEARLY_EVERY * rare
        and _tail(once, rare, _MOST_BY_CHANCE) < _DOUBT
        and _once_by_chance(rows) <= _MOST_BY_CHANCE
    )
    taken = taken or _too_many_hits(every)
    return AnswerAmongSamples(
        rows=n,
        share=sum(count > 0 for count in among) / max(n, 1),
        left_one_out=sum(_repeated(samples) for _, samples in rows) / max(n, 1),
        at_most_once=rare,
        once=once,
        place=place,
        suspected=taken or place is not None,
    )


def _once_by_chance(rows: _Texts) -> float:
    """Return how often a sample that equals at most one of the others equals one.

    As with the answer, only others that differ count; 1 where there are none.
    """
    once = never = 0
    for _, samples in rows:
        counts = Counter(samples)
        kinds, single = len(counts), [c for c in counts.values() if c == 1]
        twice = sum(2 for c in counts.values() if c == _TWICE)
        # Without a text that comes once, the others are of one kind fewer.
        never += len(single) if kinds > _TWICE else 0
        once += twice
    return once / (once + never) if once + never else 1.0


def _too_many_hits(every: _Texts) -> bool:
    """Return whether more answers are among their samples than chance allows.

    How likely the likeliest text is in the mean is at most the root of how often two
    samples are equal. The chance of a hit is concave in it, so that the mean bounds
    the chance of all hits.
    """
    asked = [(answer, samples) for answer, samples in every if samples]
    several = [samples for _, samples in asked if len(samples) > 1]
    if len(several) < _ENOUGH_ROWS:
        return False
    hits = sum(answer in samples for answer, samples in asked)
    # One pair more than there are, since it is known from few.
    one_more = fmean(1 / math.comb(len(samples), 2) for samples in several)
    equal = (sum(map(_equal_pairs, several)) + one_more) / len(several)
    likeliest = math.sqrt(min(equal, 1.0))
    chance = sum(1 - (1 - likeliest) ** len(samples) for _, samples in asked)
    share = chance / len(asked)
    if hits < _NEARLY_EVERY * len(asked):
        return False
    return _tail(hits, len(asked), share) < _DOUBT


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
