"""Readings of SNNE, of entropies and of sets of equal meaning."""

from __future__ import annotations

import math

import numpy as np

from snne_guard.scorers.arrays import given
from snne_guard.scorers.bounds import bounds
from snne_guard.scorers.clusters import component_clusters
from snne_guard.scorers.contrast import (
    full_limits,
    numerator_limits,
    shifted_limits,
    snne_clustered,
)
from snne_guard.scorers.entropy import (
    NE,
    NUM_SET,
    SE,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
)
from snne_guard.scorers.limits import Between
from snne_guard.scorers.readings.other import other_reading
from snne_guard.scorers.snne import SNNE, WSNNE, snne, wsnne
from snne_guard.types import MethodInputs

__all__ = ["NEIGHBOURS"]


def _without_self_limits(n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
    low, _ = bounds(n, tau=tau)
    if n == 1:
        return math.inf, math.inf
    return low + math.log(n) - math.log(n - 1), -math.log(n - 1)


def _snne_without_self(inputs: MethodInputs) -> float:
    return snne(inputs.similarity, tau=inputs.tau, include_self=False)


def _snne_full(inputs: MethodInputs) -> float:
    ids = given(inputs.cluster_ids)
    return snne_clustered(inputs.similarity, ids, tau=inputs.tau)


def _snne_only_num(inputs: MethodInputs) -> float:
    ids = given(inputs.cluster_ids)
    return snne_clustered(inputs.similarity, ids, tau=inputs.tau, variant="only_num")


def _snne_num_minus_denom(inputs: MethodInputs) -> float:
    return snne_clustered(
        inputs.similarity,
        given(inputs.cluster_ids),
        tau=inputs.tau,
        variant="num_minus_denom",
    )


def _wsnne_without_self(inputs: MethodInputs) -> float:
    logprobs = given(inputs.mean_logprobs)
    return wsnne(inputs.similarity, logprobs, tau=inputs.tau, include_self=False)


def _wsnne_printed(inputs: MethodInputs) -> float:
    logprobs = given(inputs.mean_logprobs)
    return wsnne(inputs.similarity, logprobs, tau=inputs.tau, reading="printed")


def _se_printed(inputs: MethodInputs) -> float:
    logprobs = given(inputs.mean_logprobs)
    return semantic_entropy(given(inputs.cluster_ids), logprobs, reading="printed")


def _ne_normalised(inputs: MethodInputs) -> float:
    return naive_entropy(given(inputs.mean_logprobs), reading="normalised")


def _num_set_compatible(inputs: MethodInputs) -> float:
    possible = given(inputs.entailment).argmax(axis=2) > 0  # 0 is contradiction
    texts = np.array(given(inputs.answers), dtype=object)
    same = possible & possible.T | (texts[:, None] == texts)
    return float(semantic_set_count(component_clusters(same)))


_CLUSTERED = {
    "needs": frozenset({"similarity", "cluster_ids"}),
    "mapping": None,
    "default_similarity": "nli",
}

NEIGHBOURS = (
    other_reading(
        SNNE,
        "snne_without_self",
        "without the diagonal, an option of the authors' code",
        _snne_without_self,
        limits=_without_self_limits,
        mapping=None,
    ),
    other_reading(
        SNNE,
        "snne_full",
        "the variant 'full' of the authors' code",
        _snne_full,
        limits=full_limits,
        **_CLUSTERED,
    ),
    other_reading(
        SNNE,
        "snne_only_num",
        "the variant 'only_num' of the authors' code",
        _snne_only_num,
        limits=numerator_limits,
        **_CLUSTERED,
    ),
    other_reading(
        SNNE,
        "snne_num_minus_denom",
        "the variant 'num_minus_denom' of the authors' code",
        _snne_num_minus_denom,
        limits=shifted_limits,
        **_CLUSTERED,
    ),
    other_reading(
        WSNNE,
        "wsnne_without_self",
        "without the diagonal, an option of the authors' code",
        _wsnne_without_self,
        limits=_without_self_limits,
        mapping=None,
    ),
    other_reading(
        WSNNE, "wsnne_printed", "weights as the paper prints them", _wsnne_printed
    ),
    other_reading(
        SE, "se_printed", "weights as the SNNE paper prints them", _se_printed
    ),
    other_reading(
        NE,
        "ne_normalised",
        "the entropy of the softmax, as the SNNE paper can be read",
        _ne_normalised,
        limits=Between(0.0, math.log),
    ),
    other_reading(
        NUM_SET,
        "num_set_compatible",
        "answers that do not contradict each other are one set, as published",
        _num_set_compatible,
        needs=frozenset({"entailment", "answers"}),
    ),
)
"""In the order of the page on methods."""
