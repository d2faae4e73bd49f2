"""A guard with a learnt rule does what the recordings said that it would do."""

from __future__ import annotations

import numpy as np
import pytest

from snne_guard.assess import Assessor, Judge, Stopping
from snne_guard.decision import CalibratedStop, Policy, Threshold
from snne_guard.evaluation import learn_stop, uncertainty_paths
from snne_guard.sampling import SamplingPlan
from tests.support.walking import ROUNDS, guarded, recorded


def by(rule: CalibratedStop, *, alone: bool) -> Assessor:
    """Return who stops by a rule, beside the certificate or alone."""
    policy = Policy(threshold=Threshold.fixed(rule.threshold), min_samples=5)
    judge = Judge(policy=policy, method="snne")
    return Assessor(
        plan=SamplingPlan(n=10, rounds=ROUNDS),
        judge=judge,
        stopping=Stopping(judge=judge, certificate=not alone, rule=rule),
    )


@pytest.fixture(scope="module")
def rule() -> CalibratedStop:
    return learn_stop(recorded(400, seed=1), rounds=ROUNDS, threshold=0.4)


def test_it_stops_and_decides_as_replayed(rule: CalibratedStop) -> None:
    new = recorded(120, seed=2)
    paths = uncertainty_paths(new, rounds=ROUNDS)
    ends, accepted = rule.replay(paths)
    assert set(ends.tolist()) == {0, 1, 2}
    for recording, end, decided in zip(new, ends, accepted, strict=True):
        found = guarded(recording, by(rule, alone=True))
        assert found.n_requested == ROUNDS[end]
        assert (found.decision == "accept") == decided


def test_beside_the_certificate_it_decides_no_worse(rule: CalibratedStop) -> None:
    new = recorded(120, seed=3)
    paths = uncertainty_paths(new, rounds=ROUNDS)
    whole = paths[:, -1] <= rule.threshold
    alone = int((rule.replay(paths)[1] != whole).sum())
    found = [guarded(recording, by(rule, alone=False)) for recording in new]
    decided = np.array([one.decision == "accept" for one in found])
    assert int((decided != whole).sum()) <= alone
    assert np.mean([one.n_requested for one in found]) < 8
