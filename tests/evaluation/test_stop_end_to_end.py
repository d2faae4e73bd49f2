"""A guard with a learnt rule does what the recordings said that it would do."""

from __future__ import annotations

import contextvars

import numpy as np
import pytest

from snne_guard.assess import Assessor, Brief, Judge, Session, Stopping
from snne_guard.decision import CalibratedStop, Policy, Threshold
from snne_guard.evaluation import Recording, learn_stop, uncertainty_paths
from snne_guard.sampling import Draw, Reply, SamplingPlan
from snne_guard.types import Assessment, Sample

ROUNDS = (3, 5, 10)
NAMES = ["Paris", "Lyon", "Nice", "Lille", "Metz", "Brest", "Caen", "Tours"]


def recorded(count: int, seed: int) -> list[Recording]:
    """Questions that a model answers more or less of one mind; now and then nothing."""
    rng = np.random.default_rng(seed)
    rows: list[Recording] = []
    for number in range(count):
        sure = rng.beta(0.6, 0.6)
        drawn = [
            ""
            if rng.random() < 0.01
            else str(rng.choice(NAMES[: 1 if rng.random() < sure else 8]))
            for _ in range(9)
        ]
        rows.append(
            Recording(
                id=str(number), question="?", main_answer="Paris", samples=tuple(drawn)
            )
        )
    return rows


def guarded(recording: Recording, rule: CalibratedStop, *, alone: bool) -> Assessment:
    """Put a recorded question through a guarded call."""
    policy = Policy(threshold=Threshold.fixed(rule.threshold), min_samples=5)
    judge = Judge(policy=policy, method="snne")
    assessor = Assessor(
        plan=SamplingPlan(n=10, rounds=ROUNDS),
        judge=judge,
        stopping=Stopping(judge=judge, certificate=not alone, rule=rule),
    )

    def send(draw: Draw) -> Reply:
        texts = recording.samples[draw.index : draw.index + draw.n]
        return Reply(samples=tuple(Sample(text=text) for text in texts))

    brief = Brief(batch=9, context=contextvars.copy_context())
    with Session(assessor, brief, send) as session:
        return session.finish(Sample(text=recording.main_answer))[0]


@pytest.fixture(scope="module")
def rule() -> CalibratedStop:
    return learn_stop(recorded(400, seed=1), rounds=ROUNDS, threshold=0.4)


def test_it_stops_and_decides_as_replayed(rule: CalibratedStop) -> None:
    new = recorded(120, seed=2)
    paths = uncertainty_paths(new, rounds=ROUNDS)
    ends, accepted = rule.replay(paths)
    assert set(ends.tolist()) == {0, 1, 2}
    for recording, end, decided in zip(new, ends, accepted, strict=True):
        found = guarded(recording, rule, alone=True)
        assert found.n_requested == ROUNDS[end]
        assert (found.decision == "accept") == decided


def test_beside_the_certificate_it_decides_no_worse(rule: CalibratedStop) -> None:
    new = recorded(120, seed=3)
    paths = uncertainty_paths(new, rounds=ROUNDS)
    whole = paths[:, -1] <= rule.threshold
    alone = int((rule.replay(paths)[1] != whole).sum())
    found = [guarded(recording, rule, alone=False) for recording in new]
    decided = np.array([one.decision == "accept" for one in found])
    assert int((decided != whole).sum()) <= alone
    assert np.mean([one.n_requested for one in found]) < 8
