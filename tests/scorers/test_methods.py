"""The registry of methods, and what turns a function into a method."""

import dataclasses
import pickle
import re
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    METHODS,
    FunctionMethod,
    bounds,
    resolve_method,
    uncertainty,
)
from snne_guard.types import Method, MethodInputs

TOY3 = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
LOGPROBS = np.array([-0.2, -0.7, -1.5])


def mean_distance(inputs: MethodInputs) -> float:
    return float(1 - inputs.similarity.mean())


def distance_limits(n: int, *, tau: float = 1.0) -> tuple[float, float]:
    return 0.0, tau * (1 - 1 / n)


DISTANCE = FunctionMethod(
    name="distance", source="here", function=mean_distance, limits=distance_limits
)


@pytest.mark.parametrize(
    ("name", "needs", "white_box", "similarity"),
    [
        ("snne", {"similarity"}, False, "content_f1"),
        ("wsnne", {"similarity", "mean_logprobs"}, True, "content_f1"),
        ("se", {"cluster_ids", "mean_logprobs"}, True, "nli"),
        ("dse", {"cluster_ids"}, False, "nli"),
        ("ne", {"mean_logprobs"}, True, "rouge_l"),
        ("num_set", {"cluster_ids"}, False, "nli"),
        ("lex_sim", {"similarity"}, False, "rouge_l"),
        ("vote_share", {"cluster_ids"}, False, "exact"),
        ("sum_eigv", {"similarity"}, False, "nli"),
        ("deg", {"similarity"}, False, "nli"),
        ("eccen", {"similarity"}, False, "nli"),
        ("luq", {"entailment"}, False, "nli"),
        ("luq_pair", {"entailment"}, False, "nli"),
        ("kle_heat", {"graph"}, False, "nli"),
        ("kle_matern", {"graph"}, False, "nli"),
        ("kle_full", {"graph", "cluster_ids", "mean_logprobs"}, True, "nli"),
        (
            "sar",
            {"token_logprobs", "token_importance", "similarity"},
            True,
            "cross_encoder",
        ),
        ("token_sar", {"token_logprobs", "token_importance"}, True, "rouge_l"),
        ("sent_sar", {"token_logprobs", "similarity"}, True, "cross_encoder"),
        ("eigen_score", {"hidden_states"}, True, "rouge_l"),
        ("p_true", {"p_true_logprob"}, True, "rouge_l"),
        (
            "semantic_density",
            {"main_entailment", "sample_mean_logprobs", "answers"},
            True,
            "nli",
        ),
        ("cocoa_msp", {"main_logprobs", "main_similarity"}, True, "rouge_l"),
        ("cocoa_ppl", {"main_logprobs", "main_similarity"}, True, "rouge_l"),
        ("sequence_probability", {"main_logprobs"}, True, "rouge_l"),
        ("mean_sequence_probability", {"mean_logprobs"}, True, "rouge_l"),
        ("perplexity", {"main_logprobs"}, True, "rouge_l"),
        ("answer_length", {"main_answer"}, False, "rouge_l"),
    ],
)
def test_what_is_registered(
    name: str, needs: set[str], white_box: bool, similarity: str
) -> None:
    method = METHODS[name]

    assert method.needs == needs
    assert method.white_box is white_box
    assert method.default_similarity == similarity


@pytest.mark.parametrize("name", METHODS)
def test_each_is_under_its_name_and_asks_for_what_there_is(name: str) -> None:
    method = METHODS[name]
    fields = {field.name for field in dataclasses.fields(MethodInputs)}

    assert method.name == name
    assert method.needs
    assert method.needs <= fields - {"tau", "metric", "anchor"}
    assert re.search(r"\b20\d\d\b|https://", method.source)
    assert pickle.loads(pickle.dumps(method)) == method  # noqa: S301 - ours


@pytest.mark.parametrize("name", ["snne", "wsnne"])
def test_the_paper_s_own_are_named_after_it(name: str) -> None:
    assert "Beyond Semantic Entropy" in METHODS[name].source


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        METHODS["mine"] = DISTANCE  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "expected"), [("snne", -10.00453722761057), ("wsnne", -10.005793104183912)]
)
def test_compute_uses_tau(name: str, expected: float) -> None:
    inputs = MethodInputs(similarity=TOY3, tau=0.1, mean_logprobs=LOGPROBS)

    assert METHODS[name].compute(inputs) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["snne", "wsnne"])
def test_bounds_and_uncertainty_are_snne_s(name: str) -> None:
    method = METHODS[name]

    assert method.bounds(4, tau=0.5) == bounds(4, tau=0.5)
    assert method.uncertainty(-2.5, 4, tau=0.8) == uncertainty(-2.5, 4, tau=0.8)
    assert method.uncertainty(-1.0, 1) is None


def test_what_a_method_needs_must_be_there() -> None:
    with pytest.raises(InputError, match="expected mean_logprobs for method 'wsnne'"):
        METHODS["wsnne"].compute(MethodInputs(similarity=TOY3))


def test_limits_make_a_straight_line() -> None:
    assert DISTANCE.uncertainty(0.0, 4) == 0.0
    assert DISTANCE.uncertainty(0.375, 4) == 0.5
    assert DISTANCE.uncertainty(0.75, 4) == 1.0
    assert DISTANCE.uncertainty(0.75, 4, tau=2.0) == 0.5
    assert DISTANCE.uncertainty(0.75 + 1e-12, 4) == 1.0
    assert DISTANCE.uncertainty(-1e-12, 4) == 0.0


@pytest.mark.parametrize("value", [-0.01, 0.76, float("nan"), float("inf")])
def test_a_value_outside_the_limits_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"expected distance in \[0.0, 0.75\]"):
        DISTANCE.uncertainty(value, 4)


def test_one_answer_and_no_limits_have_no_uncertainty() -> None:
    boundless = FunctionMethod(name="free", source="here", function=mean_distance)

    assert boundless.bounds(4) is None
    assert boundless.uncertainty(0.3, 4) is None
    assert DISTANCE.uncertainty(0.0, 1) is None


def test_limits_that_are_equal_leave_nothing_to_say() -> None:
    constant = FunctionMethod(
        name="constant",
        source="here",
        function=mean_distance,
        limits=lambda _n, /, *, tau=1.0: (tau, tau),
    )

    assert constant.uncertainty(1.0, 3) is None


@pytest.mark.parametrize(
    ("option", "logprobs", "expected"),
    [
        ("auto", True, METHODS["wsnne"]),
        ("auto", False, METHODS["snne"]),
        ("snne", True, METHODS["snne"]),
        ("wsnne", False, METHODS["wsnne"]),
        (DISTANCE, True, DISTANCE),
    ],
)
def test_what_an_option_means(
    option: str | Method, *, logprobs: bool, expected: Method
) -> None:
    assert resolve_method(option, logprobs=logprobs) is expected


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"\['snne', 'wsnne', .*, got 'sne'"):
        resolve_method("sne", logprobs=True)


class Half:
    """A method that somebody began to write."""

    name = "half"
    source = "mine"

    def compute(self, inputs: MethodInputs) -> float:
        return float(inputs.similarity.sum())


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (Half(), "Half lacks needs, white_box, bounds, uncertainty"),
        (len, "lacks name, needs.* FunctionMethod makes one from a function"),
    ],
)
def test_a_method_that_lacks_a_part_is_refused_at_once(method: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        resolve_method(method, logprobs=False)
