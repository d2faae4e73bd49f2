"""A guard with a certified plan does what the recordings said that it would do."""

from __future__ import annotations

import numpy as np
import pytest

from snne_guard import score
from snne_guard.assess import build_assessor
from snne_guard.assess.settings import complete
from snne_guard.decision import Calibration, fit_probability
from snne_guard.evaluation import Recording, calibrate
from snne_guard.types import FloatArray
from tests.support.walking import ROUNDS, guarded, recorded


def paths_of(rows: list[Recording]) -> FloatArray:
    """Return ``u`` after each round, inf where one of the members has no text."""
    table = np.full((len(rows), len(ROUNDS)), np.inf)
    for number, row in enumerate(rows):
        for place, members in enumerate(ROUNDS):
            texts = [row.main_answer, *row.samples][:members]
            if all(texts):
                found = score(texts, question="?", method="snne")
                table[number, place] = found.uncertainty
    return table


@pytest.fixture(scope="module")
def graded() -> list[Recording]:
    return recorded(700, seed=1)


@pytest.fixture(scope="module")
def made(graded: list[Recording]) -> Calibration:
    return calibrate(graded, error_rate=0.2, rounds=ROUNDS)


def test_it_stops_and_decides_as_was_certified(made: Calibration) -> None:
    assert made.cascade is not None
    assert made.threshold.certified
    settings = complete(made.guard_settings(), owner="a test")
    # Neither the recordings nor these replies say which model it is.
    assessor = build_assessor(settings)[0].on_models({None})
    new = recorded(150, seed=2)
    ends, accepted = made.cascade.replay(paths_of(new))
    assert set(ends.tolist()) == {0, 1, 2}
    for row, end, decided in zip(new, ends, accepted, strict=True):
        found = guarded(row, assessor)
        assert found.n_requested == ROUNDS[end]
        assert (found.decision == "accept") is bool(decided)
        whole = found.n_used == found.n_requested and found.uncertainty is not None
        assert found.certified is whole
        assert found.threshold == made.threshold_of(found.n_used).value


def test_each_round_reads_from_answers_that_reach_it(
    made: Calibration, graded: list[Recording]
) -> None:
    assert made.cascade is not None
    paths = paths_of(graded)
    correct = np.array([row.label for row in graded])
    ends, _ = made.cascade.replay(paths)
    for place, members in enumerate(ROUNDS):
        there = ends >= place
        reads = made.probability.get(members)
        assert reads == fit_probability(paths[there, place], correct[there])
    seen = paths[np.arange(len(paths)), ends]
    assert sorted(made.reference) == sorted(seen[np.isfinite(seen)].tolist())
