"""The certificate and the calibrated stop on recorded answers of real models."""

from __future__ import annotations

import pytest

from benchmarks import stopping
from benchmarks.stopping import POOLED, ROWS, Pool, Row

pytestmark = pytest.mark.skipif(
    not all(
        (stopping.SHARED / "data" / name).is_file() for name in stopping.FILES.values()
    ),
    reason="the recordings are not there; SNNE_GUARD_SHARED names their folder",
)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool.of(POOLED, orders=4)


@pytest.mark.parametrize("name", stopping.FILES)
def test_the_certificate_changes_no_decision_and_saves_a_little(name: str) -> None:
    ranges = stopping.certificate_ranges(stopping.recordings(name), orders=2)
    for accept in (0.35, 0.50, 0.80):
        members, _, other = stopping.certified(ranges, accept, range(2, 11))
        assert other == 0
        assert members == pytest.approx(stopping.CERTIFICATE[name, accept], abs=0.35)
        for early in (3, 5):
            _, rounds, _ = stopping.certified(ranges, accept, (early, 10))
            assert rounds > 1.5  # in two rounds it saves hardly anything
    assert stopping.certified(ranges, 0.35, (3, 10))[0] == 10


def test_what_rouge_l_comes_from_saves_a_whole_sample() -> None:
    known = stopping.recordings("hotpot")
    ranges = stopping.certificate_ranges(known, orders=1, metric=True)
    members, _, other = stopping.certified(ranges, 0.35, range(2, 11))
    assert other == 0
    assert 7.5 < members < 8.2


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.names == POOLED],  # TriviaQA alone needs more orders
    ids=lambda row: f"{row.rounds}-{row.accept}-{row.epsilon}",
)
def test_the_calibrated_stop_does_what_it_did_before(row: Row, pool: Pool) -> None:
    found = pool.stopped(row, folds=5)
    five = pool.fixed(5, row.accept)
    assert stopping.as_expected(row, found.mean, five.mean)


def test_a_figure_outside_of_the_noise_is_noticed(pool: Pool) -> None:
    row = ROWS[1]
    found, five = pool.stopped(row, folds=5).mean, pool.fixed(5, 0.35).mean
    assert stopping.as_expected(row, found, five)
    for place, off in ((0, 1.0), (2, 0.03), (4, 0.05)):
        wrong = found.copy()
        wrong[place] += off
        assert not stopping.as_expected(row, wrong, five)
    assert not stopping.as_expected(row, found, found)
    missed = stopping.MissedTargets()
    assert missed.expect(holds=True, what="a") == ""
    assert "outside" in missed.expect(holds=False, what="b")
    assert missed.missed == ["b"]
