"""The bootstrap against a loop over its draws, and what its intervals say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import (
    Interval,
    auarc,
    aupr,
    aurc,
    auroc,
    bootstrap,
    e_aurc,
    interval,
    prr,
    resamples,
)

EVERY = ("auroc", "aupr", "auarc", "prr", "prr_normalised", "aurc", "e_aurc")
GRADED = ("auarc", "prr", "prr_normalised")
NAN, INF = math.nan, math.inf


def by_itself(metric: str, uncertainty: Any, quality: Any, most: float = 1.0) -> float:
    if metric.startswith("prr"):
        normalised = metric == "prr_normalised"
        return prr(uncertainty, quality, normalised=normalised, max_rejection=most)
    alone = {"auroc": auroc, "aupr": aupr, "auarc": auarc, "aurc": aurc}
    return {**alone, "e_aurc": e_aurc}[metric](uncertainty, quality)


def all_draws(n: int, **options: int) -> Any:
    return np.concatenate(list(resamples(n, **options)))


def holds_the_loop(
    uncertainty: Any, quality: Any, metrics: tuple[str, ...], most: float = 1.0
) -> None:
    found = bootstrap(
        {"m": uncertainty}, quality, metrics=metrics, draws=30, max_rejection=most
    )
    drawn = all_draws(len(quality), draws=30)
    for place, metric in enumerate(metrics):
        loop = [by_itself(metric, uncertainty[i], quality[i], most) for i in drawn]
        got = found.draws["m"][place]
        tolerance = 0 if metric == "auroc" else 1e-12
        np.testing.assert_allclose(got, loop, rtol=0, atol=tolerance, err_msg=metric)
        here = by_itself(metric, uncertainty, quality, most)
        np.testing.assert_equal(found.interval("m", metric).value, here)


@given(
    pairs=st.lists(
        st.tuples(
            st.integers(-2, 2).map(float) | st.floats(-9, 9) | st.just(INF),
            st.sampled_from([0.0, 1.0]),
        ),
        min_size=1,
        max_size=25,
    )
)
@settings(max_examples=30)
def test_a_draw_has_the_metrics_of_the_drawn_questions(
    pairs: list[tuple[float, float]],
) -> None:
    uncertainty, correct = map(np.array, zip(*pairs, strict=True))
    holds_the_loop(uncertainty, correct, EVERY)


@given(
    pairs=st.lists(
        st.tuples(
            st.integers(-2, 2).map(float) | st.floats(-9, 9),
            st.integers(0, 6).map(lambda k: k / 6),
        ),
        min_size=1,
        max_size=25,
    ),
    most=st.sampled_from([1.0, 0.5]),
)
@settings(max_examples=30)
def test_so_it_has_for_graded_quality(
    pairs: list[tuple[float, float]], most: float
) -> None:
    uncertainty, quality = map(np.array, zip(*pairs, strict=True))
    holds_the_loop(uncertainty, quality, GRADED, most)


def ordinary(n: int = 200) -> tuple[dict[str, Any], Any]:
    generator = np.random.default_rng(7)
    signal = generator.normal(size=n)
    correct = (signal + generator.normal(size=n) < 0).astype(float)
    methods = {
        "good": signal,
        "coarse": np.round(signal),
        "noise": generator.normal(size=n),
    }
    return methods, correct


def test_draws_are_shared_by_methods_calls_and_metrics() -> None:
    methods, correct = ordinary()
    together = bootstrap(methods, correct, metrics=EVERY, draws=50, seed=3)
    for name, uncertainty in methods.items():
        alone = bootstrap(
            {name: uncertainty}, correct, metrics=("auroc",), draws=50, seed=3
        )
        np.testing.assert_array_equal(alone.draws[name][0], together.draws[name][0])
    other = bootstrap(methods, correct, metrics=EVERY, draws=50, seed=4)
    assert (other.draws["good"][0] != together.draws["good"][0]).any()


def test_more_draws_begin_like_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are made at a time."""
    many = all_draws(50, draws=40)
    monkeypatch.setattr("snne_guard.evaluation.metrics.resampling._BLOCK", 130)
    few = all_draws(50, draws=7)
    np.testing.assert_array_equal(few, many[:7])


def test_draws_are_of_all_questions_alike() -> None:
    drawn = all_draws(4, draws=5000)
    assert drawn.shape == (5000, 4)
    share = np.bincount(drawn.ravel(), minlength=4) / drawn.size
    assert share == pytest.approx([0.25] * 4, abs=0.01)


@pytest.mark.parametrize("options", [{"draws": 0}, {"seed": -1}, {"n": -1}])
def test_draws_that_make_no_sense(options: dict[str, int]) -> None:
    """Said at the call, not at the first draw."""
    with pytest.raises(ConfigurationError, match=f"got .*{min(options.values())}"):
        resamples(**{"n": 3, **options})


def test_a_difference_is_taken_draw_by_draw() -> None:
    methods, correct = ordinary()
    found = bootstrap(methods, correct, draws=400)
    one, two = found.draws["good"][0], found.draws["coarse"][0]
    compared = found.compare("good", "coarse", "auroc")
    assert compared.difference == auroc(methods["good"], correct) - auroc(
        methods["coarse"], correct
    )
    low, high = np.quantile(one - two, [0.025, 0.975])
    assert (compared.low, compared.high) == pytest.approx((low, high))
    unpaired = interval(0, one - np.roll(two, 1))
    assert compared.high - compared.low < unpaired.high - unpaired.low


def test_p_is_small_for_a_signal_and_not_for_noise() -> None:
    methods, correct = ordinary()
    methods["other noise"] = np.random.default_rng(8).normal(size=len(correct))
    found = bootstrap(methods, correct, draws=999)
    assert found.compare("good", "noise", "auroc").p == pytest.approx(2 / 1000)
    assert found.compare("noise", "good", "auroc").p == pytest.approx(2 / 1000)
    assert found.compare("noise", "other noise", "auroc").p > 0.05
    same = found.compare("good", "good", "auroc")
    assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_the_interval_has_its_share_of_the_draws() -> None:
    methods, correct = ordinary()
    for level in (0.5, 0.9):
        found = bootstrap(methods, correct, draws=1000, level=level)
        got = found.interval("good", "auroc")
        drawn = found.draws["good"][0]
        inside = (drawn >= got.low) & (drawn <= got.high)
        assert inside.mean() == pytest.approx(level, abs=0.005)
        assert got.low < got.value < got.high


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    """AUROC of two normals a standard deviation apart is Phi(1/sqrt(2))."""
    generator = np.random.default_rng(1)
    truth, hits, n = 0.7602499389, 0, 150
    for _ in range(200):
        wrong = generator.random(n) < 0.4
        uncertainty = generator.normal(size=n) + wrong
        found = bootstrap(
            {"u": uncertainty}, ~wrong, metrics=("auroc",), draws=300
        ).interval("u", "auroc")
        hits += found.low <= truth <= found.high
    assert hits / 200 == pytest.approx(0.95, abs=0.05)


def test_draws_of_one_class_are_left_out() -> None:
    found = bootstrap({"u": [1.0, 2.0, 3.0]}, [1, 1, 0], metrics=("auroc", "auarc"))
    drawn = all_draws(3)
    both = sum(0 < (row == 2).sum() < 3 for row in drawn)
    got = found.interval("u", "auroc")
    assert got == Interval(value=1.0, low=1.0, high=1.0, draws=both)
    assert 600 < both < 750
    assert found.interval("u", "auarc").draws == 1000


@pytest.mark.parametrize(("correct", "draws"), [([1, 1, 1], 0), ([0], 0), ([], 0)])
def test_no_draw_has_the_metric(correct: list[int], draws: int) -> None:
    scores = [float(k) for k in range(len(correct))]
    found = bootstrap({"a": scores, "b": scores}, correct, metrics=("auroc",))
    got, compared = found.interval("a", "auroc"), found.compare("a", "b", "auroc")
    assert (got.draws, compared.draws) == (draws, draws)
    for value in (got.value, got.low, got.high, compared.difference, compared.p):
        assert math.isnan(value)


def test_no_method() -> None:
    assert bootstrap({}, [1, 0]).point == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ("auroc", "AUROC")}, "among auarc, .*got 'AUROC'"),
        ({"draws": 0}, "draws >= 1"),
        ({"seed": -1}, "a seed >= 0"),
        ({"level": 1.0}, "level in"),
        ({"level": NAN}, "level in"),
    ],
)
def test_options_that_make_no_sense(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        bootstrap({"u": [1, 2]}, [1, 0], **options)


@pytest.mark.parametrize(
    ("uncertainties", "quality", "options", "message"),
    [
        ({"a": [1, 2], "b": [1, NAN]}, [1, 0], {}, "uncertainty of b .*nan at 1"),
        ({"a": [1, 2, 3]}, [1, 0], {}, "3 and 2"),
        ({"a": [1, 2]}, [1, 0.5], {}, "0 or 1"),
        ({"a": [1, 2]}, [1, NAN], {"metrics": GRADED}, "finite"),
        ({"a": [1, 2]}, [1, 0], {"max_rejection": 0.0}, "max_rejection"),
    ],
)
def test_malformed(
    uncertainties: Any, quality: Any, options: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap(uncertainties, quality, **options)


def test_names_that_are_not_there() -> None:
    found = bootstrap({"a": [1, 2]}, [1, 0], draws=2)
    with pytest.raises(ConfigurationError, match="one of a, got 'b'"):
        found.interval("b", "auroc")
    with pytest.raises(ConfigurationError, match="auroc, auarc, prr, got 'aupr'"):
        found.compare("a", "a", "aupr")


@pytest.mark.parametrize("level", [0.0, 1.5])
def test_an_interval_of_no_level(level: float) -> None:
    with pytest.raises(ConfigurationError, match="level in"):
        interval(0.5, [0.4, 0.6], level=level)
