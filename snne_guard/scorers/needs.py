"""What each need of a method takes, and whether what compares the answers gives it."""

from __future__ import annotations

from snne_guard.errors import ConfigurationError
from snne_guard.scorers.relation import Relation
from snne_guard.types import Method

__all__ = [
    "LOGPROB_NEEDS",
    "MAIN_NEEDS",
    "OF_EACH",
    "RELATION_NEEDS",
    "check_relation",
    "compares_answers",
]

LOGPROB_NEEDS = frozenset(
    {"mean_logprobs", "token_logprobs", "main_logprobs", "sample_mean_logprobs"}
)
"""Needs that only token log-probabilities can meet."""

RELATION_NEEDS = frozenset(
    {
        "similarity",
        "cluster_ids",
        "entailment",
        "sentence_entailment",
        "graph",
        "main_similarity",
        "main_entailment",
    }
)
"""Needs that depend on what compares the answers; with one of them its name belongs to
the name of what ran."""

MAIN_NEEDS = frozenset(
    {"main_answer", "main_entailment", "main_logprobs", "main_similarity"}
)
"""Needs that the delivered answer alone can meet."""

OF_EACH = frozenset({"hidden_states", "token_importance"})
"""Needs that are handed in, one entry for each text."""

_ENTAILED = frozenset({"entailment", "main_entailment", "sentence_entailment"})


def compares_answers(method: Method, /) -> bool:
    """Return whether a method looks at how the answers relate to one another.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> [compares_answers(METHODS[name]) for name in ("snne", "dse", "perplexity")]
        [True, True, False]
    """
    return not RELATION_NEEDS.isdisjoint(method.needs)


def check_relation(method: Method, relation: Relation, /) -> None:
    """Raise ConfigurationError where a relation cannot give what a method needs.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> check_relation(METHODS["snne"], Relation.of("rouge_l"))
    """
    needs = method.needs
    if "cluster_ids" in needs and not (relation.equates or relation.entails):
        msg = (
            f"expected a similarity that says which answers mean the same for method "
            f"{method.name!r}, as 'exact', 'numeric' and 'nli' do, "
            f"got {relation.name!r}"
        )
        raise ConfigurationError(msg)
    if needs & _ENTAILED and not relation.entails:
        msg = (
            f"expected a similarity with the probabilities of entailment for method "
            f"{method.name!r}, such as 'nli', got {relation.name!r}"
        )
        raise ConfigurationError(msg)
    if getattr(method, "with_question", False) and not relation.with_question:
        msg = (
            f"expected a similarity with the question in front of the answers for "
            f"method {method.name!r}, such as 'rouge_l+question', got {relation.name!r}"
        )
        raise ConfigurationError(msg)
