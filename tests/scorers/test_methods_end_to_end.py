"""Texts to the score of each method, on any relation that can give what it needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS, score
from snne_guard.similarity import SIMILARITIES
from snne_guard.similarity.entailment import entail_similarity
from snne_guard.types import FloatArray

ANSWERS = ["Paris", "Paris.", "Paris", "Lyon", "It is Paris"]
LOGPROBS = [[-0.5], [-0.25, -0.75], [-0.1], [-2.0], [-1.0, -1.0, -1.0]]
FIVE = math.log(5)
OF_SIMILARITY = ["lex_sim", "sum_eigv", "deg", "eccen"]
OF_CLUSTERS = ["se", "dse", "num_set", "vote_share"]


class Rules:
    """Stands in for an NLI model: a text entails what is in it, else denies it."""

    name = "nli:rules"
    strict = True

    def probabilities(
        self, texts: Any, /, *, question: str | None = None
    ) -> FloatArray:
        del question
        yes, no = (0.05, 0.15, 0.8), (0.6, 0.3, 0.1)
        return np.array([[yes if b in a else no for b in texts] for a in texts])

    def __call__(self, texts: Any, /, *, question: str | None = None) -> FloatArray:
        return entail_similarity(self.probabilities(texts, question=question))


@pytest.mark.parametrize(
    ("method", "similarity", "value", "u"),
    [
        # Clusters {Paris, Paris}, {Paris.}, {Lyon}, {It is Paris}.
        ("dse", "exact", 1.3321790402101223, 1.3321790402101223 / FIVE),
        ("num_set", "exact", 4.0, 0.75),
        ("vote_share", "exact", 0.6, 0.75),
        ("vote_share", None, 0.6, 0.75),
        # Normalised: {Paris, Paris., Paris}, {Lyon}, {It is Paris}.
        ("dse", "normalised", 0.9502705392332347, 0.9502705392332347 / FIVE),
        ("num_set", "normalised", 3.0, 0.5),
        ("vote_share", "normalised", 0.4, 0.5),
        # Three pairs are equal, three have one word of one and three in common.
        ("lex_sim", None, -0.45, 0.55),
        ("lex_sim", "exact", -0.1, 0.9),
        ("sum_eigv", "exact", 4.0, 0.75),
        ("deg", "exact", 3.6, 0.9),
        ("eccen", "exact", math.sqrt(3), math.sqrt(3) / 2),
        # "Paris" is in "It is Paris", but not the other way round.
        ("num_set", Rules(), 4.0, 0.75),
        ("dse", Rules(), 1.3321790402101223, 1.3321790402101223 / FIVE),
    ],
)
def test_known_scores(method: str, similarity: Any, value: float, u: float) -> None:
    got = score(ANSWERS, method=method, similarity=similarity)

    assert got.method == method
    assert got.value == pytest.approx(value, abs=1e-9)
    assert got.uncertainty == pytest.approx(u, abs=1e-9)
    assert got.reasons == ()


def test_semantic_entropy_weighs_clusters() -> None:
    got = score(ANSWERS, token_logprobs=LOGPROBS, method="se", similarity="normalised")

    weights = [math.exp(value) for value in (-0.5, -0.5, -0.1, -2.0, -1.0)]
    shares = [sum(weights[:3]) / sum(weights), *(w / sum(weights) for w in weights[3:])]
    assert got.value == pytest.approx(-sum(s * math.log(s) for s in shares), abs=1e-12)
    assert got.uncertainty == pytest.approx(got.value / math.log(5), abs=1e-12)


def test_naive_entropy_has_no_place_in_0_to_1() -> None:
    got = score(ANSWERS, token_logprobs=LOGPROBS, method="ne")

    assert got.value == pytest.approx((0.5 + 0.5 + 0.1 + 2.0 + 1.0) / 5)
    assert got.uncertainty is None
    assert got.reasons == ("no_bounds",)


@pytest.mark.parametrize("method", ["luq", "luq_pair"])
def test_support_comes_from_entailment_alone(method: str) -> None:
    got = score(["a b", "a"], method=method, similarity=Rules())

    support = 0.8 / 0.85, 0.1 / 0.7
    expected = {"luq": 1 - sum(support) / 2, "luq_pair": 1 - support[0]}[method]
    assert got.value == pytest.approx(expected, abs=1e-12)
    assert got.uncertainty == pytest.approx(expected, abs=1e-12)
    assert got.similarity == "nli:rules"
    with pytest.raises(ConfigurationError, match="probabilities of entailment"):
        score(ANSWERS, method=method, similarity="rouge_l")


@pytest.mark.parametrize("method", OF_CLUSTERS)
@pytest.mark.parametrize("similarity", ["rouge_l", "rouge_l_paper"])
def test_a_similarity_alone_makes_no_clusters(method: str, similarity: str) -> None:
    with pytest.raises(ConfigurationError, match="which answers mean the same"):
        score(ANSWERS, method=method, similarity=similarity)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("method", OF_SIMILARITY)
def test_graphs_are_over_any_similarity(method: str, similarity: str) -> None:
    alike = score(["7"] * 4, method=method, similarity=similarity)
    mixed = score(["7", "8", "7", "7"], method=method, similarity=similarity)
    apart = score(["1", "2", "3", "4"], method=method, similarity=similarity)

    assert alike.uncertainty == 0.0
    assert mixed.uncertainty is not None
    assert 0 < mixed.uncertainty < 1
    assert apart.uncertainty == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["se", "ne"])
def test_log_probabilities_that_are_missing(method: str) -> None:
    with pytest.raises(InputError, match=f"mean_logprobs for method '{method}'"):
        score(ANSWERS, method=method, similarity="exact")


@pytest.mark.parametrize("name", [*OF_SIMILARITY, *OF_CLUSTERS, "ne"])
def test_one_answer_and_empty_ones(name: str) -> None:
    """An empty sample is no member; one answer differs from nothing."""
    got = score(
        ["Paris", "", " "],
        token_logprobs=[[-0.5], [], []],
        method=name,
        similarity="exact",
    )

    assert (got.n, got.uncertainty) == (1, None)
    assert got.reasons == ("empty_samples", "too_few_samples")
    assert math.isfinite(got.value)


@pytest.mark.parametrize("name", ["se", "dse", "num_set", "sum_eigv", "luq"])
def test_who_needs_an_nli_model_asks_for_it_by_default(name: str) -> None:
    assert METHODS[name].default_similarity == "nli"
