"""Readings of methods on pairs of answers, their graph and its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from snne_guard.scorers.arrays import given
from snne_guard.scorers.kernel import (
    KLE_FULL,
    KLE_HEAT,
    KLE_MATERN,
    kle_full,
    kle_heat,
    kle_matern,
    kle_semantic,
)
from snne_guard.scorers.lex_sim import LEX_SIM
from snne_guard.scorers.limits import Between
from snne_guard.scorers.luq import LUQ_PAIR, luq_pair, luq_sentences
from snne_guard.scorers.readings.other import CODE, other_reading
from snne_guard.scorers.spectral import DEG, ECCEN, degree, eccentricity, eigenvalue_sum
from snne_guard.similarity.entailment import edge_weights, entailment_ratio
from snne_guard.types import FloatArray, MethodInputs

__all__ = ["GRAPHS"]


def _most_over_n(n: int) -> float:
    return 1 - 1 / n


def _ratio(inputs: MethodInputs) -> FloatArray:
    return entailment_ratio(given(inputs.entailment))


def _confidence(inputs: MethodInputs) -> FloatArray:
    return edge_weights(given(inputs.entailment), weights="confidence")


def _of_full(inputs: MethodInputs) -> tuple[Any, Any, Any]:
    return given(inputs.graph), given(inputs.cluster_ids), given(inputs.mean_logprobs)


def _deg_over_n(inputs: MethodInputs) -> float:
    return degree(inputs.similarity, normalised=True)


def _eccen_smallest(inputs: MethodInputs) -> float:
    k = round(eigenvalue_sum(inputs.similarity))
    return eccentricity(inputs.similarity, smallest=k)


def _luq_pair_premise(inputs: MethodInputs) -> float:
    return luq_pair(_ratio(inputs), reading="premise")


def _luq_pair_hypothesis(inputs: MethodInputs) -> float:
    return luq_pair(_ratio(inputs), reading="hypothesis")


def _luq_sentences(inputs: MethodInputs) -> float:
    ratio = entailment_ratio(given(inputs.sentence_entailment))
    return luq_sentences(ratio, given(inputs.sentence_of))


def _kle_heat_normalised(inputs: MethodInputs) -> float:
    return kle_heat(given(inputs.graph), normalised=True)


def _kle_heat_unweighted(inputs: MethodInputs) -> float:
    return kle_heat(np.ones_like(given(inputs.graph)))


def _kle_heat_confidence(inputs: MethodInputs) -> float:
    return kle_heat(_confidence(inputs))


def _kle_matern_normalised(inputs: MethodInputs) -> float:
    return kle_matern(given(inputs.graph), normalised=True)


def _kle_matern_confidence(inputs: MethodInputs) -> float:
    return kle_matern(_confidence(inputs))


def _kle_full_unweighted(inputs: MethodInputs) -> float:
    return kle_full(*_of_full(inputs), drop_weights=True)


def _kle_clusters(inputs: MethodInputs) -> float:
    return kle_semantic(*_of_full(inputs))


def _kle_clusters_overwritten(inputs: MethodInputs) -> float:
    return kle_semantic(*_of_full(inputs), overwrite=True)


_ENTAILED = frozenset({"entailment"})

GRAPHS = (
    other_reading(
        LEX_SIM,
        "lex_sim_question",
        f"the question before each answer, {CODE}",
        LEX_SIM.function,
        needs=frozenset({"similarity", "question"}),
        default_similarity="rouge_l_paper+question",
        with_question=True,
    ),
    other_reading(
        DEG,
        "deg_over_n",
        "divided by n, as published",
        _deg_over_n,
        limits=Between(0.0, _most_over_n),
    ),
    other_reading(
        ECCEN,
        "eccen_smallest",
        "the k smallest eigenvalues, as in the text, k being U_EigV to the nearest one",
        _eccen_smallest,
    ),
    other_reading(
        LUQ_PAIR,
        "luq_pair_premise",
        "both directions, the answer as the premise",
        _luq_pair_premise,
    ),
    other_reading(
        LUQ_PAIR,
        "luq_pair_hypothesis",
        "both directions, the answer as the hypothesis",
        _luq_pair_hypothesis,
    ),
    other_reading(
        LUQ_PAIR,
        "luq_sentences",
        "sentence by sentence, as published in Zhang et al. 2024, LUQ",
        _luq_sentences,
        needs=frozenset({"sentence_entailment", "sentence_of"}),
    ),
    other_reading(
        KLE_HEAT,
        "kle_heat_normalised",
        "on the normalised Laplacian",
        _kle_heat_normalised,
    ),
    other_reading(
        KLE_HEAT,
        "kle_heat_unweighted",
        f"every pair an edge of 1, {CODE} for graphs without weights",
        _kle_heat_unweighted,
    ),
    other_reading(
        KLE_HEAT,
        "kle_heat_confidence",
        f"edges by the probability of the likeliest class, {CODE}",
        _kle_heat_confidence,
        needs=_ENTAILED,
    ),
    other_reading(
        KLE_MATERN,
        "kle_matern_normalised",
        "on the normalised Laplacian",
        _kle_matern_normalised,
    ),
    other_reading(
        KLE_MATERN,
        "kle_matern_confidence",
        f"edges by the probability of the likeliest class, {CODE}",
        _kle_matern_confidence,
        needs=_ENTAILED,
    ),
    other_reading(
        KLE_FULL,
        "kle_full_unweighted",
        f"each edge counts as 1, {CODE}",
        _kle_full_unweighted,
    ),
    other_reading(
        KLE_FULL,
        "kle_clusters",
        "the kernel on the clusters, KLE-c",
        _kle_clusters,
    ),
    other_reading(
        KLE_FULL,
        "kle_clusters_overwritten",
        f"the kernel on the clusters, KLE-c, edges overwritten {CODE}",
        _kle_clusters_overwritten,
    ),
)
"""In the order of the page on methods."""
