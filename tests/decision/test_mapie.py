"""Where MAPIE's risk control tests the same thresholds, ours passes the same ones.

MAPIE's controller, told to control the error among accepted answers by a fixed
sequence, is the same procedure: the exact binomial p-value, and a sequence that stops
at the first failure.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from mapie.risk_control import BinaryClassificationController, BinaryRisk
from numpy.typing import NDArray
from scipy.stats import binom

from snne_guard.decision import Threshold
from snne_guard.decision.bounds import critical_counts
from snne_guard.decision.risk_control import first_accepted

# One minus MAPIE's own precision, which it would multiply to 8.0000001 errors, and 9.
ERROR_AMONG_ACCEPTED = BinaryRisk(
    risk_occurrence=lambda truth, accepted: truth != accepted,
    risk_condition=lambda _, accepted: accepted == 1,
    higher_is_better=False,
)
Draw = tuple[NDArray[np.float64], NDArray[np.bool_]]


def answers(seed: int, n: int = 250, *, digits: int = 9) -> Draw:
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < 0.25
    u = np.clip(rng.normal(0.35 + 0.3 * wrong, 0.15), 0.01, 0.99).round(digits)
    order = np.argsort(u, kind="stable")
    return u[order].astype(np.float64), wrong[order]


def valid(draw: Draw, grid: NDArray[np.float64], how: str, alpha: float) -> list[float]:
    """Return the thresholds on u that MAPIE accepts, in its order."""
    u, wrong = draw
    controller = BinaryClassificationController(
        predict_function=lambda scores: np.column_stack([scores, 1 - scores]),
        risk=ERROR_AMONG_ACCEPTED,
        target_level=alpha,
        best_predict_param_choice="recall",
        confidence_level=0.9,
        list_predict_params=1 - grid,
        fwer_method=how,
    )
    with warnings.catch_warnings():
        # It warns of none found, of all found, and of errors that do not only rise.
        warnings.simplefilter("ignore", UserWarning)
        controller.calibrate(u, (~wrong).astype(int))
    found = np.asarray(controller.valid_predict_params)
    return sorted(grid[np.isclose(1 - grid[:, None], found).any(axis=1)].tolist())


@pytest.mark.parametrize("digits", [9, 2, 1])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_a_fixed_sequence_over_a_grid_ends_where_mapies_does(
    alpha: float, digits: int
) -> None:
    compared = certified = 0
    for seed in range(8):
        u, wrong = answers(seed, digits=digits)
        grid = np.linspace(0.1551, 0.9551, 41)
        ours = Threshold.for_error_rate(u, ~wrong, alpha=alpha, pilot=grid)
        counts = np.searchsorted(u, grid, side="right")
        errors = np.append(0, np.cumsum(wrong))[counts]
        first = first_accepted(len(u), alpha=alpha, delta=0.1) / len(u)
        tested = np.arange(1, len(grid) + 1) >= first * len(grid)
        theirs = valid((u, wrong), grid[tested], "fixed_sequence", alpha)
        # MAPIE multiplies a rate by n and rounds up: 7.000000000000001 errors are 8.
        theirs_counted = np.ceil(counts * (errors / counts))
        allowed = critical_counts(len(u), alpha, 0.1)[counts]
        differ = tested & (theirs_counted > allowed) & (errors <= allowed)
        if not (differ & (grid <= ours.value)).any():
            assert ours.value == (theirs[-1] if theirs else -1.0)
            compared += 1
            certified += ours.certified
    assert compared >= 6
    assert certified >= (0 if alpha < 0.1 else 4)


@pytest.mark.parametrize("seed", [0, 1])
def test_bonferroni_over_a_grid_passes_the_same_thresholds(seed: int) -> None:
    u, wrong = answers(seed)
    grid = np.linspace(0.1051, 0.9051, 41)
    theirs = valid((u, wrong), grid, "bonferroni", 0.1)
    allowed = critical_counts(len(u), 0.1, 0.1 / len(grid))
    counts = np.searchsorted(u, grid, side="right")
    errors = np.append(0, np.cumsum(wrong))[counts]
    ours = grid[errors <= allowed[counts]]
    assert theirs == pytest.approx(ours.tolist())
    assert len(ours) > 5


def test_mapies_p_value_is_ours() -> None:
    u, wrong = answers(5)
    n, errors = len(u), int(wrong.sum())
    alpha = errors / n + 0.03
    found = valid((u, wrong), np.array([0.999]), "bonferroni", alpha)
    assert bool(found) == (binom.cdf(errors, n, alpha) <= 0.1)
