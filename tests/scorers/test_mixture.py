"""Several methods as one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import score
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS, READINGS, Mixture, resolve_method
from snne_guard.types import Method

PARTS = ("snne", "anchored_snne", "lex_sim")
ANSWERS = st.lists(
    st.sampled_from(["Paris", "It is Paris", "Lyon", "Rome"]), min_size=2
)


def methods(*names: str) -> tuple[Method, ...]:
    return tuple(METHODS[name] for name in names)


@given(
    answers=ANSWERS,
    weights=st.none() | st.tuples(*[st.floats(0.1, 9)] * 3),
    tau=st.sampled_from([0.3, 1.0]),
)
def test_it_is_the_mean_of_the_uncertainties(
    answers: list[str], weights: tuple[float, ...] | None, tau: float
) -> None:
    mixed = Mixture(methods(*PARTS), weights)
    found = score(answers, method=mixed, similarity="rouge_l", tau=tau)
    parts = [
        score(answers, method=part, similarity="rouge_l", tau=tau).uncertainty or 0.0
        for part in PARTS
    ]
    shares = weights or (1.0, 1.0, 1.0)
    expected = sum(w * u for w, u in zip(shares, parts, strict=True)) / sum(shares)
    assert found.uncertainty == pytest.approx(expected, abs=1e-12)
    assert found.value == found.uncertainty


def test_a_name_with_a_plus_is_a_mixture() -> None:
    found = resolve_method("snne+anchored_snne", logprobs=False)
    assert found == Mixture(methods("snne", "anchored_snne"))
    assert found.name == "snne+anchored_snne"
    assert found.bounds(5) == (0, 1)
    assert not found.white_box
    assert Mixture(methods("snne", "wsnne")).white_box
    assert found.needs == {"similarity", "main_similarity"}
    assert METHODS["snne"].source in found.source
    weighted = Mixture(methods("snne", "anchored_snne"), (1, 0.5))
    assert weighted.name == "1*snne+0.5*anchored_snne"


def test_the_first_part_chooses_the_similarity() -> None:
    found = score(["a", "b"], method="lex_sim+anchored_snne")
    assert found.similarity == METHODS["lex_sim"].default_similarity


def test_one_answer_has_no_uncertainty() -> None:
    found = score(["a"], method="snne+lex_sim")
    assert (found.uncertainty, found.value) == (None, 1.0)
    assert found.reasons == ("too_few_samples",)


def test_a_temperature_that_says_nothing_is_named() -> None:
    found = score(["a", "b"], method="snne+lex_sim", tau=1e-14)
    assert found.uncertainty is None
    assert found.reasons == ("tau_too_extreme",)


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (("snne",), None),
        ((), None),
        (("snne", "snne"), None),
        (("snne", "ne"), None),
        (("snne", "lex_sim"), (1.0,)),
        (("snne", "lex_sim"), (1.0, 0.0)),
        (("snne", "lex_sim"), (1.0, math.nan)),
        (("snne", "lex_sim"), (1.0, math.inf)),
        (("snne", "lex_sim"), ("a", "b")),
        (("snne", "lex_sim"), 2.0),
    ],
)
def test_what_cannot_be_mixed(
    names: tuple[str, ...],
    weights: Any,
) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        Mixture(methods(*names), weights)


@pytest.mark.parametrize("name", ["snne+", "+", "snne+nothing"])
def test_an_unknown_part_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="one of"):
        score(["a"], method=name)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_wrong_values(value: float) -> None:
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        Mixture(methods("snne", "lex_sim")).uncertainty(value, 3)


def test_the_anchor_is_told_of_those_who_heed_it() -> None:
    answers = ["Paris", "Lyon", "Paris"]

    def told(method: str) -> float:
        return score(answers, method=method, similarity="content_f1").anchor

    assert told("snne") == told("snne+anchored_snne") == 0.7
    assert told("snne_without_self") == told("anchored_snne") == told("lex_sim") == 0
    assert not any(method.anchors for method in READINGS.values())
