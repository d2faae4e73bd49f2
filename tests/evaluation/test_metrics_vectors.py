"""Every number of the reference vectors that a metric can give."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import auarc, auroc, prr
from tests.support.shared_folder import SHARED

VECTORS = SHARED / "reference" / "vectors.json"
TOLERANCE = 1e-12
# Two cases have ties, and there the authors' code gives whatever order it met.
TIED = {
    "ties_all_same_uncertainty",
    "ties_all_same_uncertainty_permuted",
    "ties_partial",
}

pytestmark = pytest.mark.skipif(
    not VECTORS.is_file(), reason=f"no reference vectors at {VECTORS.name}"
)


@cache
def cases() -> list[dict[str, Any]]:
    loaded = json.loads(VECTORS.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = loaded["eval_metrics"]
    return found


def arrays(case: dict[str, Any]) -> tuple[Any, Any]:
    """Return the case without the questions that the authors' code skips."""
    uncertainty = np.array([float(value) for value in case["uncertainty"]])
    there = ~np.isnan(uncertainty)
    return uncertainty[there], np.array(case["quality"], dtype=float)[there]


def close(expected: float) -> Any:
    return pytest.approx(expected, abs=TOLERANCE)


def test_all_cases_are_there() -> None:
    assert len(cases()) == 10


def test_auroc() -> None:
    compared = 0
    for case in cases():
        expected = case["expected"]["auroc_code(y=1-quality)"]
        uncertainty, quality = arrays(case)
        if expected == "n/a":
            with pytest.raises(InputError, match="0 or 1"):
                auroc(uncertainty, quality)
        elif expected == "nan":
            assert math.isnan(auroc(uncertainty, quality))
        elif expected == "raises ValueError":
            assert auroc(uncertainty, quality) == 1.0, "inf is ranked here"
        else:
            assert auroc(uncertainty, quality) == close(expected), case["id"]
            compared += 1
    assert compared == 7


def test_auarc() -> None:
    for case in cases():
        expected, got = case["expected"], auarc(*arrays(case))
        assert got == close(expected["auarc_tie_averaged"]), case["id"]
        if case["id"] not in TIED:
            assert got == close(expected["auarc_code"]), case["id"]


def test_raw_prr() -> None:
    key = "prr_code_raw(min-max quality, no oracle/random normalisation)"
    for case in cases():
        expected = case["expected"]
        for rejection in (1.0, 0.5):
            got = prr(*arrays(case), normalised=False, max_rejection=rejection)
            area = expected[f"maxrej={rejection}"]
            assert got == close(area["raw_tie_averaged"]), case["id"]
            if case["id"] not in TIED:
                assert got == close(area["raw_stable_order"]), case["id"]
        if case["id"] not in TIED:
            assert prr(*arrays(case), normalised=False) == close(expected[key])


def test_normalised_prr() -> None:
    undefined = 0
    for case in cases():
        for rejection in (1.0, 0.5):
            area = case["expected"][f"maxrej={rejection}"]
            got = prr(*arrays(case), normalised=True, max_rejection=rejection)
            if isinstance(area["prr_normalised_exact"], str):
                assert math.isnan(got), case["id"]
                undefined += 1
            else:
                assert got == close(area["prr_normalised_exact"]), case["id"]
                shuffled = area["prr_normalised_lmpolygraph"]
                if case["id"] not in TIED:  # its random order is drawn, ours is exact
                    assert got == pytest.approx(shuffled, abs=0.03), case["id"]
    assert undefined == 4


def test_oracle_and_random_are_the_ends() -> None:
    for case in cases():
        _, quality = arrays(case)
        for rejection in (1.0, 0.5):
            area = case["expected"][f"maxrej={rejection}"]
            best = prr(-quality, quality, normalised=False, max_rejection=rejection)
            said_nothing = np.zeros_like(quality)
            random = prr(
                said_nothing, quality, normalised=False, max_rejection=rejection
            )
            assert best == close(area["oracle"]), case["id"]
            assert random == close(area["random_exact(=mean normalised quality)"])


def test_the_random_order_that_lm_polygraph_draws() -> None:
    """Their shuffles have the number that they say, by our area of each."""
    said = (
        "random_lmpolygraph"
        "(1000 shuffles, np.random.seed(42), legacy RandomState.shuffle)"
    )
    for case in cases():
        _, quality = arrays(case)
        n = len(quality)
        order, random = np.arange(n), np.random.RandomState(42)
        drawn = np.empty((1000, n), dtype=np.intp)
        for row in drawn:
            random.shuffle(order)
            row[:] = order
        span = quality.max() - quality.min()
        grades = (quality - quality.min()) / span if span else np.full(n, 0.5)
        # Of each shuffle the mean quality of the k most certain, for all k.
        kept = grades[drawn.argsort(axis=1)].cumsum(axis=1) / np.arange(1, n + 1)
        for rejection in (1.0, 0.5):
            areas = kept[:, n - int(rejection * n) :].mean(axis=1)
            area = case["expected"][f"maxrej={rejection}"]
            assert areas.mean() == close(area[said]), case["id"]
            first = prr(drawn[0], quality, normalised=False, max_rejection=rejection)
            assert first == close(areas[0]), case["id"]


def test_nan_is_refused_where_the_authors_skip_it() -> None:
    case = next(case for case in cases() if case["id"] == "nan_uncertainty_skipped")
    uncertainty = [float(value) for value in case["uncertainty"]]
    for metric in (auroc, auarc):
        with pytest.raises(InputError, match="without NaN"):
            metric(uncertainty, case["quality"])
