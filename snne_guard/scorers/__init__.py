"""Methods that score how far answers differ, from arrays of numbers.

Each method of the paper, and each that the field measures itself against, is a pure
function on arrays, with an entry in ``METHODS``. Arguments are named as the
properties of ``ResponseSet``. Log-probabilities and entropies are in nats, and a higher
value is always more uncertain.

Every function raises InputError for an array that is masked, holds NaN, or has a shape
or range other than the documented one, and ConfigurationError for an option outside its
range. Rounding errors are clipped.
"""

from snne_guard.scorers.eigen_score import eigen_score
from snne_guard.scorers.entailment import (
    entailment_ratio,
    luq,
    luq_pair,
    semantic_density,
)
from snne_guard.scorers.entropy import (
    discrete_semantic_entropy,
    greedy_clusters,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
    vote_share,
)
from snne_guard.scorers.graph import (
    degree,
    eccentricity,
    eigenvalue_sum,
    lexical_similarity,
)
from snne_guard.scorers.inputs import ResponseSet
from snne_guard.scorers.kle import (
    edge_weights,
    heat_kernel,
    kle,
    kle_full,
    matern_kernel,
)
from snne_guard.scorers.likelihood import (
    answer_length,
    cocoa,
    p_true,
    p_true_prompt,
    perplexity,
    sequence_probability,
)
from snne_guard.scorers.method import Method
from snne_guard.scorers.sar import sar, sent_sar, token_sar
from snne_guard.scorers.scoring import METHODS, resolve_method, score, score_members
from snne_guard.scorers.snne import bounds, snne, uncertainty, wsnne

__all__ = [
    "METHODS",
    "Method",
    "ResponseSet",
    "answer_length",
    "bounds",
    "cocoa",
    "degree",
    "discrete_semantic_entropy",
    "eccentricity",
    "edge_weights",
    "eigen_score",
    "eigenvalue_sum",
    "entailment_ratio",
    "greedy_clusters",
    "heat_kernel",
    "kle",
    "kle_full",
    "lexical_similarity",
    "luq",
    "luq_pair",
    "matern_kernel",
    "naive_entropy",
    "p_true",
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
    "token_sar",
    "uncertainty",
    "vote_share",
    "wsnne",
]
