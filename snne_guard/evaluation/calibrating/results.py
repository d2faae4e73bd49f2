"""What a calibration was made of, as frozen values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from snne_guard.decision import Calibration, Exploration
from snne_guard.types import FloatArray, IntArray

__all__ = ["CalibrationRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRun:
    """A calibration with the evidence behind it.

    Attributes:
        calibration: What a guard starts from.
        ids: ``(n,)`` of the answers that the threshold was tested on.
        uncertainty: ``(n,)`` their ``u``, ``inf`` where the guard could never accept
            one.
        correct: ``(n,)`` 1 right, 0 wrong; empty where no labels were needed.
        n_read: Recordings that were read.
        n_fitted: Graded answers that a combination was learnt from, and which so are
            not among those.
        ungraded: Recordings that nobody and nothing has graded: they are left out.
        skipped: Those that a person has looked at and passed over.
        n_pilot: Answers whose scores fixed where the tests start.
        graders: How many grades came from whom.
        unacceptable: Why answers could never be accepted, as reason codes, and how
            many.
        exploration: What other error rates would cost, under one promise for all of
            them; empty without labels of both kinds.
        warnings: What a reader of the promise must know.
    """

    calibration: Calibration
    ids: tuple[str, ...] = field(repr=False)
    uncertainty: FloatArray = field(repr=False)
    correct: IntArray = field(repr=False)
    n_read: int
    n_fitted: int = 0
    ungraded: int = 0
    skipped: int = 0
    n_pilot: int = 0
    graders: Counter[str] = field(default_factory=Counter[str])
    unacceptable: Counter[str] = field(default_factory=Counter[str])
    exploration: tuple[Exploration, ...] = ()
    warnings: tuple[str, ...] = ()
