"""A whole plan of rounds, stops and thresholds that carries one promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.decision.rounds import Limits, check_rounds, ends_early, limit_or, walk
from snne_guard.decision.stored import read_fields
from snne_guard.decision.threshold import Threshold
from snne_guard.decision.wording import percent
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import Score

__all__ = ["Cascade"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """After each round an answer is accepted, given up, or more samples are drawn.

    The promise is on all of it at once: with a probability of at least 1 - delta over
    the draw of the graded questions, at most alpha of the accepted answers are wrong,
    in whichever round they were accepted.

    Attributes:
        rounds: Members of the response set after each round, the last is n.
        accept_at_most: For each round the largest ``u`` that is accepted there, None
            where none is.
        reject_at_least: For each round but the last the smallest ``u`` at which
            sampling ends and the answer is not accepted, None where there is none.
        promise: What is promised, with the counts that it rests on; its value is the
            limit after the last round, -1.0 where that accepts none.
        knob: The probability of being wrong up to which answers are accepted, None
            where nothing may be accepted.
        n_fit: Graded questions that the limits were learnt from; the promise was
            tested on others.
        mean_members: Members that the tested questions took on average.
        mean_rounds: Rounds that they took on average.

    Raises:
        ConfigurationError: If the parts contradict each other.
    """

    rounds: tuple[int, ...]
    accept_at_most: Limits
    reject_at_least: Limits
    promise: Threshold
    knob: float | None = None
    n_fit: int = 0
    mean_members: float | None = None
    mean_rounds: float | None = None

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        early = len(self.rounds) - 1
        if (len(self.accept_at_most), len(self.reject_at_least)) != (early + 1, early):
            msg = (
                f"expected {early + 1} limits for acceptance and {early} for giving "
                f"up; got {len(self.accept_at_most)} and {len(self.reject_at_least)}"
            )
            raise ConfigurationError(msg)
        for accept, reject in zip(
            self.accept_at_most, (*self.reject_at_least, None), strict=True
        ):
            low = -1.0 if accept is None else accept
            high = 2.0 if reject is None else reject
            if not -1 <= low < high <= 2:  # noqa: PLR2004 - beyond any u
                msg = f"expected limits in order; got {accept} and {reject}"
                raise ConfigurationError(msg)
        self._check_promise()

    def _check_promise(self) -> None:
        last = self.accept_at_most[-1]
        none = all(limit is None for limit in self.accept_at_most)
        value = -1.0 if last is None else last
        if self.promise.value != value or self.promise.certified == none:
            msg = (
                "expected a promise for the limits: certified where something is "
                f"accepted, its value that of the last round; got {self.promise!r}"
            )
            raise ConfigurationError(msg)

    @property
    def n(self) -> int:
        """Members of the whole response set."""
        return self.rounds[-1]

    @property
    def certified(self) -> bool:
        """Whether it carries a promise."""
        return self.promise.certified

    @property
    def statement(self) -> str:
        """The promise, or why there is none, in plain words."""
        one = self.promise
        if not one.certified:
            return one.statement
        return (
            f"With a probability of at least {percent(1 - (one.delta or 0))} over the "
            f"draw of the graded questions, at most {percent(one.level or 0)} of the "
            f"accepted answers are wrong, in whichever of the rounds "
            f"{', '.join(map(str, self.rounds))} they are accepted: "
            f"{percent(one.acceptance or 0)} of the answers, at "
            f"{self.mean_members or 0:.1f} of {self.n} members on average "
            f"({one.n_wrong} wrong of {one.n_accepted} accepted among {one.n_labels} "
            "graded)."
        )

    def threshold(self, members: int, /) -> Threshold:
        """Return the threshold for a set of so many members.

        Its value is the limit of that round, -1.0 where none is accepted or no round
        ends there; the promise is that of the whole.

        Example:
            >>> promise = Threshold(
            ...     value=0.4, kind="error_rate", status="certified", level=0.1
            ... )
            >>> plan = Cascade(
            ...     rounds=(3, 10),
            ...     accept_at_most=(0.1, 0.4),
            ...     reject_at_least=(0.9,),
            ...     promise=promise,
            ... )
            >>> [plan.threshold(members).value for members in (3, 4, 10)]
            [0.1, -1.0, 0.4]
        """
        limits = dict(zip(self.rounds, self.accept_at_most, strict=True))
        limit = limits.get(members)
        return replace(self.promise, value=limit_or(limit, -1.0))

    def __call__(self, score: Score, missing: int, /) -> bool:
        """Return whether the members so far are enough: a rule for when to stop.

        They are not where one of them failed or left the set, or another method ran
        than in the graded questions: nothing was learnt of such a set.
        """
        return ends_early(
            score,
            missing,
            rounds=self.rounds,
            accept_at_most=self.accept_at_most,
            reject_at_least=self.reject_at_least,
            method=self.promise.method,
        )

    def replay(self, paths: ArrayLike, /) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return where the plan ends, and what is decided, on recorded questions.

        Args:
            paths: ``(questions, rounds)`` ``u`` after each round, NaN or ``inf`` where
                the set was incomplete: there nothing is decided, and at the last one
                it is not accepted.

        Returns:
            ``(questions,)`` place in ``rounds`` of the last one that is drawn, and
            ``(questions,)`` whether the answer is accepted.

        Example:
            >>> promise = Threshold(
            ...     value=0.4, kind="error_rate", status="certified", level=0.1
            ... )
            >>> plan = Cascade(
            ...     rounds=(3, 10),
            ...     accept_at_most=(0.1, 0.4),
            ...     reject_at_least=(0.9,),
            ...     promise=promise,
            ... )
            >>> plan.replay([[0.0, 0.7], [0.5, 0.3], [1.0, 0.1]])
            (array([0, 1, 0]), array([ True,  True, False]))
        """
        return walk(
            paths,
            accept_at_most=self.accept_at_most,
            reject_at_least=self.reject_at_least,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        lists = ("rounds", "accept_at_most", "reject_at_least")
        content = asdict(self) | {name: list(getattr(self, name)) for name in lists}
        return content | {"promise": self.promise.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], /) -> Self:
        """Return what ``to_dict`` wrote.

        Raises:
            InputError: A field is missing, unknown, of the wrong type or contradicts
                another one.
        """
        try:
            promise = Threshold.from_dict(content["promise"])
        except (KeyError, TypeError) as error:
            msg = "expected a cascade with a promise"
            raise InputError(msg) from error
        return read_fields(cls, {**content, "promise": promise})
