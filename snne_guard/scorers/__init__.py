"""Similarity matrix and log-probabilities to a score of how far answers spread."""

from snne_guard.scorers.anchored import anchored_snne, anchored_wsnne
from snne_guard.scorers.bounds import bounds, uncertainty
from snne_guard.scorers.certificate import (
    PartlyBounded,
    snne_partial_bounds,
    uncertainty_range,
    wsnne_partial_bounds,
)
from snne_guard.scorers.clusters import component_clusters, greedy_clusters
from snne_guard.scorers.cocoa import cocoa_msp, cocoa_ppl
from snne_guard.scorers.combination import COMBINED, Combination, fit_combination
from snne_guard.scorers.contrast import snne_clustered
from snne_guard.scorers.density import semantic_density
from snne_guard.scorers.eigen_score import eigen_score
from snne_guard.scorers.entropy import (
    discrete_semantic_entropy,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
)
from snne_guard.scorers.graph_kernels import (
    cluster_kernel,
    heat_kernel,
    matern_kernel,
    normalised_kernel,
    von_neumann_entropy,
)
from snne_guard.scorers.kernel import kle_full, kle_heat, kle_matern, kle_semantic
from snne_guard.scorers.lex_sim import lexical_similarity
from snne_guard.scorers.likelihood import (
    answer_length,
    mean_sequence_probability,
    perplexity,
    sequence_probability,
)
from snne_guard.scorers.luq import luq, luq_pair, luq_sentences
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.mixture import Mixture
from snne_guard.scorers.p_true import (
    Shot,
    p_true,
    p_true_few_shot,
    p_true_logprob,
    p_true_prompt,
)
from snne_guard.scorers.readings import READINGS
from snne_guard.scorers.registry import METHODS, resolve_method
from snne_guard.scorers.sar import sar, sent_sar, token_sar
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
    "COMBINED",
    "METHODS",
    "READINGS",
    "Combination",
    "FunctionMethod",
    "Mixture",
    "PartlyBounded",
    "Shot",
    "Spectrum",
    "anchored_snne",
    "anchored_wsnne",
    "answer_length",
    "bounds",
    "cluster_kernel",
    "cocoa_msp",
    "cocoa_ppl",
    "component_clusters",
    "degree",
    "discrete_semantic_entropy",
    "eccentricity",
    "eigen_score",
    "eigenvalue_sum",
    "fit_combination",
    "greedy_clusters",
    "heat_kernel",
    "kle_full",
    "kle_heat",
    "kle_matern",
    "kle_semantic",
    "laplacian_spectrum",
    "lexical_similarity",
    "luq",
    "luq_pair",
    "luq_sentences",
    "matern_kernel",
    "mean_sequence_probability",
    "naive_entropy",
    "normalised_kernel",
    "p_true",
    "p_true_few_shot",
    "p_true_logprob",
    "p_true_prompt",
    "perplexity",
    "resolve_method",
    "sar",
    "score",
    "score_members",
    "semantic_density",
    "semantic_entropy",
    "semantic_set_count",
    "sent_sar",
    "sequence_probability",
    "snne",
    "snne_clustered",
    "snne_partial_bounds",
    "token_sar",
    "uncertainty",
    "uncertainty_range",
    "von_neumann_entropy",
    "vote_share",
    "wsnne",
    "wsnne_partial_bounds",
]
