"""A stopping rule that was learnt from recordings, and what is promised about it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard._version import __version__
from snne_guard.decision.bound_settings import NO_ANCHOR, check_anchor
from snne_guard.decision.rounds import Limits, check_rounds, ends_early, limit_or, walk
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import Score

__all__ = ["CalibratedStop"]

_KIND = "snne_guard.CalibratedStop"
_SETTINGS = (
    "n",
    "method",
    "similarity",
    "anchor",
    "tau",
    "rounds",
    "include_answer",
    "threshold",
    "temperature",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedStop:
    """Stops where recordings show that the whole set would decide alike.

    For each round but the last it holds up to which ``u`` an answer is accepted and
    from which on it is not, without further samples; in between they are drawn. The
    first never lies above the threshold and the second never below, so that a stopped
    answer too is accepted if and only if its own ``u`` is at most the threshold.

    The promise, for questions drawn like the recorded ones: with probability
    ``confidence`` over the recordings, at most the share ``epsilon`` of questions get
    another decision than with all n members. It says nothing of whether decisions are
    right, for which it needed no labels.

    Attributes:
        rounds: Members of the response set after each round, the last n.
        threshold: Largest accepted ``u``.
        accept_at_most: For each round but the last the largest ``u`` that is accepted
            at once, None where none is.
        reject_at_least: For each round but the last the smallest ``u`` that is not
            accepted at once, None where there is none.
        method: Name of the method.
        similarity: Name of the similarity.
        anchor: Share of the method's weight on the delivered answer, as in
            ``Score.anchor``.
        tau: Temperature of the similarity's softmax.
        include_answer: Whether the answer is a member.
        temperature: Sampling temperature of the samples.
        epsilon: Share of questions that may get another decision.
        confidence: Probability of the promise.
        eta: Doubt about the decision at which it stops; None: it never stops, since
            nothing could be promised.
        n_records: Recordings that it was learnt from.
        n_certified: Those of them that the promise was tested on.
        disagreements: Those of these that got another decision.
        mean_members: Members that these took on average.
        mean_rounds: Rounds that they took on average.
        version: Version of the library that learnt it.

    Raises:
        ConfigurationError: If the parts contradict each other.
    """

    rounds: tuple[int, ...]
    threshold: float
    accept_at_most: Limits
    reject_at_least: Limits
    method: str = "snne"
    similarity: str = "content_f1"
    anchor: float = NO_ANCHOR
    tau: float = 1.0
    include_answer: bool = True
    temperature: float = 1.0
    epsilon: float = 0.05
    confidence: float = 0.9
    eta: float | None = None
    n_records: int = 0
    n_certified: int = 0
    disagreements: int = 0
    mean_members: float | None = None
    mean_rounds: float | None = None
    version: str = __version__

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        check_anchor(self.anchor)
        t = self.threshold
        if not 0 <= t <= 1:
            msg = f"threshold must be in [0, 1]; got {t!r}"
            raise ConfigurationError(msg)
        for name, share in (("epsilon", self.epsilon), ("confidence", self.confidence)):
            if not 0 < share < 1:
                msg = f"{name} must be above 0 and below 1; got {share!r}"
                raise ConfigurationError(msg)
        early = len(self.rounds) - 1
        if (len(self.accept_at_most), len(self.reject_at_least)) != (early, early):
            msg = f"expected limits for each of the {early} rounds before the last"
            raise ConfigurationError(msg)
        for accept, reject in zip(
            self.accept_at_most, self.reject_at_least, strict=True
        ):
            # NaN is on neither side.
            if not (limit_or(accept, t) <= t < limit_or(reject, math.inf)):
                msg = (
                    f"expected limits on their sides of the threshold {t}; "
                    f"got {accept} and {reject}"
                )
                raise ConfigurationError(msg)

    @property
    def n(self) -> int:
        """Members of the whole response set."""
        return self.rounds[-1]

    @property
    def settings(self) -> dict[str, Any]:
        """What a guard must have set alike for the promise to hold."""
        return {name: getattr(self, name) for name in _SETTINGS}

    def __call__(self, score: Score, missing: int, /) -> bool:
        """Return whether the members so far are enough.

        They are not where one of them failed or left the set, or another method ran
        than in the recordings: nothing was learnt of such a set.
        """
        return ends_early(
            score,
            missing,
            rounds=self.rounds,
            accept_at_most=self.accept_at_most,
            reject_at_least=self.reject_at_least,
            method=self.method,
        )

    def replay(self, paths: ArrayLike, /) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return where the rule ends, and what is decided, on recorded questions.

        Args:
            paths: ``(questions, rounds)`` ``u`` after each round, NaN where the set
                was incomplete.

        Returns:
            ``(questions,)`` place in ``rounds`` of the last one that is drawn, and
            ``(questions,)`` whether the answer is accepted.

        Example:
            >>> rule = CalibratedStop(
            ...     rounds=(3, 10),
            ...     threshold=0.4,
            ...     accept_at_most=(0.1,),
            ...     reject_at_least=(0.9,),
            ... )
            >>> rule.replay([[0.0, 0.1], [0.5, 0.3], [1.0, 0.7]])
            (array([0, 1, 0]), array([ True,  True, False]))
        """
        return walk(
            paths,
            accept_at_most=(*self.accept_at_most, self.threshold),
            reject_at_least=self.reject_at_least,
        )

    def check(self, settings: Mapping[str, Any], /) -> None:
        """Refuse settings for which nothing is promised.

        Args:
            settings: What a guard has set, with keys of ``settings``.

        Raises:
            ConfigurationError: One of them is another one; the message names it.
        """
        differences = [
            f"{name}={getattr(self, name)!r}, and here it is {here!r}"
            for name, here in settings.items()
            if getattr(self, name) != here
        ]
        if differences:
            msg = f"the calibrated stop was learnt with {'; '.join(differences)}"
            raise ConfigurationError(msg)

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write the rule as JSON.

        Raises:
            OSError: The file cannot be written.
        """
        content = {"kind": _KIND, **asdict(self)}
        text = json.dumps(content, indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read a rule that ``save`` wrote.

        Raises:
            InputError: The file holds none.
            OSError: The file cannot be read.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls(**_fields(content))
        except (ValueError, TypeError) as error:
            msg = f"expected a calibrated stop in {os.fspath(path)!r}: {error}"
            raise InputError(msg) from error


def _fields(content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the fields of a rule from the JSON object that it was saved as."""
    if not isinstance(content, dict):
        msg = f"expected an object, got {type(content).__name__}"
        raise TypeError(msg)
    given = cast("dict[str, Any]", content)
    kind = given.pop("kind", None)
    if kind != _KIND:
        msg = f"expected an object of kind {_KIND!r}, got {kind!r}"
        raise ValueError(msg)
    given.setdefault("anchor", NO_ANCHOR)
    missing = {field.name for field in fields(CalibratedStop)} - given.keys()
    if missing:
        msg = f"expected a field {min(missing)!r}"
        raise ValueError(msg)
    lists = ("rounds", "accept_at_most", "reject_at_least")
    return given | {name: tuple(given[name]) for name in lists}
