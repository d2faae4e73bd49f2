"""The certificate and the calibrated stop on recorded answers of real models."""

from __future__ import annotations

import pytest

from benchmarks import certificate, stopping
from benchmarks.stopping import POOLED, ROWS, Pool, Row

pytestmark = pytest.mark.skipif(
    not all(
        (certificate.SHARED / "data" / name).is_file()
        for name in certificate.FILES.values()
    ),
    reason="the recordings are not there; SNNE_GUARD_SHARED names their folder",
)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool.of(POOLED, orders=4)


@pytest.mark.parametrize("name", certificate.FILES)
def test_the_certificate_changes_no_decision_and_saves_a_little(name: str) -> None:
    ranges = certificate.certificate_ranges(certificate.recordings(name), orders=2)
    for accept in (0.35, 0.50, 0.80):
        members, _, other = certificate.certified(ranges, accept, range(2, 11))
        assert other == 0
        assert members == pytest.approx(certificate.CERTIFICATE[name, accept], abs=0.35)
        for early in (3, 5):
            _, rounds, _ = certificate.certified(ranges, accept, (early, 10))
            assert rounds > 1.5  # in two rounds it saves hardly anything
    assert certificate.certified(ranges, 0.35, (3, 10))[0] == 10


def test_what_rouge_l_comes_from_saves_a_whole_sample() -> None:
    known = certificate.recordings("hotpot")
    ranges = certificate.certificate_ranges(known, orders=1, metric=True)
    members, _, other = certificate.certified(ranges, 0.35, range(2, 11))
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
    missed = certificate.MissedTargets()
    assert missed.expect(holds=True, what="a") == ""
    assert "outside" in missed.expect(holds=False, what="b")
    assert missed.missed == ["b"]
