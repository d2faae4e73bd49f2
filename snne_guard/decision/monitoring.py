"""Drift: whether new uncertainties still look like those of a calibration."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.decision.calibration import Calibration
from snne_guard.decision.labels import uncertainties
from snne_guard.decision.risk_control import scipy_stats
from snne_guard.errors import InputError

_LEVEL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """How new uncertainties compare with those that a calibration was made from.

    Attributes:
        n: New answers that have a score.
        p_value: Probability, if there is no drift, of a distance at least this large.
        drifted: Whether the p-value is below 0.01, which is the false alarm rate.
        mean_reference: Mean ``u`` of the calibration's answers.
        mean: Mean ``u`` of the new answers.
        accepted_reference: Share of the calibration's scored answers that its threshold
            accepts.
        accepted: Share of the new scored answers that it accepts.
    """

    n: int
    p_value: float
    drifted: bool
    mean_reference: float
    mean: float
    accepted_reference: float
    accepted: float

    @property
    def statement(self) -> str:
        """What was found and what to do, in plain words."""
        figures = (
            f"mean u {self.mean:.3f} (was {self.mean_reference:.3f}), "
            f"{self.accepted:.1%} accepted (was {self.accepted_reference:.1%}), "
            f"p = {self.p_value:.2g} on {self.n} answers"
        )
        if self.drifted:
            return (
                f"The uncertainties have changed: {figures}. The calibration's "
                "guarantee may no longer hold; grade new answers and calibrate again."
            )
        return (
            f"No change was found: {figures}. The test cannot see a model that errs "
            "more often at the same u."
        )


def drift(
    calibration: Calibration | str | os.PathLike[str], uncertainty: ArrayLike, /
) -> DriftReport:
    """Compare new uncertainties with those that a calibration was made from.

    It is the two-sample Kolmogorov-Smirnov test with the asymptotic p-value; ties make
    it conservative. It notices questions that have become easier or harder, but not a
    model that errs more often at the same ``u``.

    Args:
        calibration: A ``Calibration`` or the path of one. It needs a reference, which
            ``calibrate`` gives it.
        uncertainty: ``(n,)`` ``u`` of new answers, in [0, 1], drawn and scored as the
            calibration's were; ``inf`` for one without a score, which is left out.

    Raises:
        InputError: If the file is not a calibration, it has no reference, no new
            answer has a score, or a score is NaN or outside [0, 1].
        MissingExtraError: If scipy is not installed.

    Example:
        >>> from snne_guard.decision import Threshold
        >>> u = np.linspace(0, 1, 200)
        >>> calibration = Calibration(
        ...     settings={}, threshold=Threshold.fixed(0.4), reference=tuple(u)
        ... )
        >>> drift(calibration, u**2).drifted, drift(calibration, u[::3]).drifted
        (True, False)
    """
    if not isinstance(calibration, Calibration):
        calibration = Calibration.load(calibration)
    new = uncertainties(uncertainty)
    new = new[np.isfinite(new)]
    reference = np.asarray(calibration.reference)
    if not reference.size or not new.size:
        missing = "a reference in the calibration" if new.size else "a scored answer"
        msg = f"expected {missing} to compare, got none"
        raise InputError(msg)
    test = scipy_stats().ks_2samp(reference, new, method="asymp")
    limit = calibration.threshold.value
    return DriftReport(
        n=len(new),
        p_value=float(test.pvalue),
        drifted=bool(test.pvalue < _LEVEL),
        mean_reference=float(reference.mean()),
        mean=float(new.mean()),
        accepted_reference=float((reference <= limit).mean()),
        accepted=float((new <= limit).mean()),
    )
