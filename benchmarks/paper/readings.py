"""Other readings of the methods: where the SNNE paper, its code and its sources differ.

``METHODS`` has one reading of each method, the one that works. These are the others,
to compare with published numbers. Each is a ``Method`` in ``READINGS`` and takes the
same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_entailment
from snne_guard.scorers import METHODS, Method, snne, wsnne
from snne_guard.scorers.cluster_entropy import cluster_masses, entropy
from snne_guard.scorers.entailment import entailment_ratio
from snne_guard.scorers.graph import degree, lexical_similarity
from snne_guard.scorers.hidden_states import eigen_score
from snne_guard.scorers.kernel_entropy import (
    heat_kernel,
    kle,
    kle_full,
    matern_kernel,
    unit_trace,
    von_neumann_entropy,
)
from snne_guard.scorers.nearest_neighbor import softmax_weights
from snne_guard.scorers.relevance import sar, token_sar
from snne_guard.similarity import rouge_l_paper
from snne_guard.types import FloatArray

__all__ = ["READINGS", "component_clusters", "with_question"]

_EMPTY_SUM = math.log(1e-8)


def with_question(
    texts: Sequence[str], /, *, question: str | None = None
) -> FloatArray:
    """Compare the question with each answer behind it, as the code does for LexSim."""
    return rouge_l_paper([f"{question} {text}" for text in texts])


def component_clusters(equivalent: ArrayLike) -> list[int]:
    """Return clusters as connected components, the option ``dfs`` of the code."""
    rows = np.asarray(equivalent)
    reached = rows | np.eye(len(rows), dtype=bool)
    for _ in rows:
        reached = reached @ reached
    first = reached.argmax(axis=1).tolist()
    order = sorted(set(first))
    return [order.index(one) for one in first]


def printed_weights(mean_logprobs: ArrayLike) -> FloatArray:
    """Return the weights as the paper prints them, l_i / sum l: the order turns."""
    logprobs = np.asarray(mean_logprobs, dtype=np.float64)
    shares: FloatArray = logprobs / logprobs.sum()
    return shares


def wsnne_printed(similarity: ArrayLike, mean_logprobs: ArrayLike) -> float:
    """Return WSNNE with the weights that the paper prints."""
    rows = np.log(np.exp(np.asarray(similarity, dtype=np.float64)).sum(axis=1))
    return -float(printed_weights(mean_logprobs) @ rows)


def se_printed(cluster_ids: Sequence[int], mean_logprobs: ArrayLike) -> float:
    """Return SE with the weights that the paper prints."""
    weights = printed_weights(mean_logprobs).tolist()
    return entropy(cluster_masses([*cluster_ids], weights).values())


def ne_normalised(mean_logprobs: ArrayLike) -> float:
    """Return the entropy of the softmax of the log-probabilities: NE by its text."""
    weights = softmax_weights(mean_logprobs)
    return entropy((weights / weights.sum()).tolist())


def snne_full(
    similarity: FloatArray, cluster_ids: ArrayLike, *, tau: float = 1.0
) -> float:
    """Return -mean log(sum over the own cluster / sum over all), without the diagonal.

    The default of a script that the paper's tables do not come from.
    """
    ids = np.asarray(cluster_ids)
    own = np.where(ids[:, None] == ids, similarity, -np.inf)
    logs = [_log_sums(matrix, tau) for matrix in (own, similarity)]
    return float((logs[1] - logs[0]).mean())


def _log_sums(matrix: FloatArray, tau: float) -> FloatArray:
    sums = np.exp(matrix / tau)
    np.fill_diagonal(sums, 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log(sums.sum(axis=1))
    return np.where(np.isneginf(logs), _EMPTY_SUM, logs)


def luq_pair_directed(entailment: ArrayLike, *, as_premise: bool) -> float:
    """Return LUQ-Pair with both directions, an answer as premise or hypothesis."""
    support = entailment_ratio(entailment)
    np.fill_diagonal(support, 0.0)
    best = support.max(axis=1 if as_premise else 0)
    return 1 - float(best.mean())


def confidence_weights(entailment: ArrayLike) -> FloatArray:
    """Return edges of the likeliest class's probability, even of contradiction."""
    one_way = as_entailment(entailment).max(axis=2)
    weights: FloatArray = one_way + one_way.T
    np.fill_diagonal(weights, 0.0)
    return weights


def kle_semantic_overwritten(
    graph: FloatArray,
    cluster_ids: Sequence[int],
    mean_logprobs: ArrayLike,
    *,
    alpha: float = 0.5,
    kernel: Callable[[ArrayLike], FloatArray] = heat_kernel,
) -> float:
    """Return KLE-c where edges from a later cluster overwrite those to it."""
    ids = [*cluster_ids]
    sums: dict[tuple[int, int], float] = {}
    for i, j in zip(*np.triu_indices(len(ids), 1), strict=True):
        key = ids[i], ids[j]
        sums[key] = sums.get(key, 0.0) + float(graph[i, j])
    between = np.zeros((max(ids) + 1, max(ids) + 1))
    for (one, other), weight in sums.items():
        between[one, other] = between[other, one] = weight
    masses = cluster_masses(ids, softmax_weights(mean_logprobs).tolist())
    mixed = alpha * unit_trace(kernel(between))
    mixed += (1 - alpha) * np.diag([masses[one] for one in range(len(between))])
    return von_neumann_entropy(mixed)


def eigen_score_official(hidden_states: ArrayLike) -> float:
    """Return EigenScore as in its own repository: covariance / (d - 1), log10."""
    states = np.asarray(hidden_states, dtype=np.float64)
    scale = math.sqrt(states.shape[1] - 1)
    return eigen_score(states / scale) / math.log(10)


def inverted(token_importance: Sequence[ArrayLike]) -> list[FloatArray]:
    """Return similarities in the place of importance: the code's slip in SAR."""
    return [1 - np.asarray(one, dtype=np.float64) for one in token_importance]


def _reading(base: str, function: Callable[..., float], **changes: Any) -> Method:  # noqa: ANN401 - fields of many kinds
    """Return a method with another function and no ``u``."""
    parts: dict[str, Any] = {"limits": None, "mapping": None, "options": (), **changes}
    return replace(METHODS[base], function=function, without_logprobs=None, **parts)


_ALL = {
    # Without the diagonal, an option of the code.
    "snne_without_self": _reading(
        "snne", partial(snne, include_self=False), options=("tau",)
    ),
    "wsnne_without_self": _reading(
        "wsnne", partial(wsnne, include_self=False), options=("tau",)
    ),
    "snne_full": _reading(
        "snne",
        snne_full,
        arguments=("similarity", "cluster_ids"),
        options=("tau",),
        default_similarity="nli",
    ),
    "wsnne_printed": _reading("wsnne", wsnne_printed),
    "se_printed": _reading("se", se_printed),
    "ne_normalised": _reading("ne", ne_normalised),
    # On ``with_question``.
    "lex_sim_question": _reading("lex_sim", lexical_similarity),
    "deg_over_n": _reading("deg", lambda weights: degree(weights) / len(weights)),
    "luq_pair_premise": _reading(
        "luq_pair", partial(luq_pair_directed, as_premise=True)
    ),
    "luq_pair_hypothesis": _reading(
        "luq_pair", partial(luq_pair_directed, as_premise=False)
    ),
    "kle_heat_normalised": _reading(
        "kle_heat", partial(kle, kernel=partial(heat_kernel, normalised=True))
    ),
    "kle_matern_normalised": _reading(
        "kle_matern", partial(kle, kernel=partial(matern_kernel, normalised=True))
    ),
    # Every pair an edge of 1: the code for graphs without weights.
    "kle_heat_unweighted": _reading("kle_heat", lambda graph: kle(np.ones_like(graph))),
    "kle_heat_confidence": _reading(
        "kle_heat",
        lambda entailment: kle(confidence_weights(entailment)),
        arguments=("entailment",),
    ),
    "kle_matern_confidence": _reading(
        "kle_matern",
        lambda table: kle(confidence_weights(table), kernel=matern_kernel),
        arguments=("entailment",),
    ),
    # Each edge counts as 1: the code loses the weights.
    "kle_full_unweighted": _reading(
        "kle_full",
        lambda graph, ids, logprobs: kle_full(1.0 * (graph > 0), ids, logprobs),
    ),
    "kle_semantic_overwritten": _reading("kle_full", kle_semantic_overwritten),
    "sar_inverted": _reading(
        "sar", lambda logprobs, weights, f: sar(logprobs, inverted(weights), f)
    ),
    "token_sar_inverted": _reading(
        "token_sar", lambda logprobs, weights: token_sar(logprobs, inverted(weights))
    ),
    "eigen_score_official": _reading("eigen_score", eigen_score_official),
    # 1 - log P(True).
    "p_true_code": _reading("p_true", lambda logprob: 1 - logprob),
}

READINGS: Mapping[str, Method] = MappingProxyType(
    {name: replace(reading, name=name) for name, reading in _ALL.items()}
)
"""The readings by name, as in the table of the README."""
