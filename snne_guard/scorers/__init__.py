"""Similarity matrix and log-probabilities to a score of how far answers spread."""

from snne_guard.scorers.bounds import bounds, uncertainty
from snne_guard.scorers.certificate import (
    PartlyBounded,
    snne_partial_bounds,
    uncertainty_range,
    wsnne_partial_bounds,
)
from snne_guard.scorers.clusters import component_clusters, greedy_clusters
from snne_guard.scorers.entropy import (
    discrete_semantic_entropy,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
)
from snne_guard.scorers.lex_sim import lexical_similarity
from snne_guard.scorers.luq import luq, luq_pair, luq_sentences
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.registry import METHODS, resolve_method
from snne_guard.scorers.scoring import score, score_members
from snne_guard.scorers.snne import snne, wsnne
from snne_guard.scorers.spectral import (
    Spectrum,
    degree,
    eccentricity,
    eigenvalue_sum,
    laplacian_spectrum,
)
from snne_guard.scorers.vote import vote_share

__all__ = [
    "METHODS",
    "FunctionMethod",
    "PartlyBounded",
    "Spectrum",
    "bounds",
    "component_clusters",
    "degree",
    "discrete_semantic_entropy",
    "eccentricity",
    "eigenvalue_sum",
    "greedy_clusters",
    "laplacian_spectrum",
    "lexical_similarity",
    "luq",
    "luq_pair",
    "luq_sentences",
    "naive_entropy",
    "resolve_method",
    "score",
    "score_members",
    "semantic_entropy",
    "semantic_set_count",
    "snne",
    "snne_partial_bounds",
    "uncertainty",
    "uncertainty_range",
    "vote_share",
    "wsnne",
    "wsnne_partial_bounds",
]
