"""In which order recorded answers are shown to whoever grades them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b

from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.scorers import score

__all__ = ["hardest_first", "random_order"]


def random_order(
    recordings: Iterable[Recording], /, *, seed: int = 0
) -> list[Recording]:
    """Return recordings in an order that has nothing to do with what they say.

    It goes by a hash of seed and id. So the ones that were labelled when somebody
    stops are a random sample of all, the same order comes again the next day, and
    recordings that were added since fall in anywhere.

    Example:
        >>> rows = [
        ...     Recording(id=name, question="?", main_answer="x", samples=())
        ...     for name in "abcd"
        ... ]
        >>> [row.id for row in random_order(rows)]
        ['c', 'd', 'a', 'b']
        >>> [row.id for row in random_order(reversed(rows))]
        ['c', 'd', 'a', 'b']
    """

    def place(recording: Recording) -> bytes:
        key = f"{seed} {recording.id}".encode("utf-8", "surrogatepass")
        return blake2b(key, digest_size=16).digest()

    return sorted(recordings, key=place)


def hardest_first(
    recordings: Iterable[Recording], /, *, seed: int = 0
) -> list[Recording]:
    """Return recordings by falling uncertainty, those without one first.

    What is labelled first tells much about a method and nothing about its error rate:
    no promise can come of such labels. The uncertainty is the one of ``score`` with
    its defaults.
    """
    return sorted(random_order(recordings, seed=seed), key=_certainty)


def _certainty(recording: Recording) -> float:
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    found = score(
        (recording.main_answer, *recording.samples),
        token_logprobs=(recording.main_logprobs, *logprobs),
        question=recording.question,
    )
    return -math.inf if found.uncertainty is None else -found.uncertainty
