"""How small the majority is: the vote share of self-consistency."""

from __future__ import annotations

from numpy.typing import ArrayLike

from snne_guard.scorers.clusters import as_cluster_ids, cluster_sizes
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.types import MethodInputs

__all__ = ["VOTE_SHARE", "vote_share"]


def vote_share(cluster_ids: ArrayLike) -> float:
    r"""Return how many answers are not with the majority.

    .. math:: U = 1 - \max_C |C| / n

    Args:
        cluster_ids: ``(n,)`` cluster of each answer, n >= 1.

    Returns:
        A share, from 0 (all answers say the same) to ``1 - 1/n`` (each another thing).

    Raises:
        InputError: The clusters are not whole numbers.

    Source:
        Wang et al. 2023, "Self-Consistency Improves Chain of Thought Reasoning in
        Language Models": the share of the majority, as a confidence.

    Example:
        >>> vote_share([0, 0, 0, 1])
        0.25
    """
    ids = as_cluster_ids(cluster_ids)
    largest = max(cluster_sizes(ids).values())
    return (len(ids) - largest) / len(ids)


def _vote_share(inputs: MethodInputs) -> float:
    assert inputs.cluster_ids is not None  # noqa: S101 - FunctionMethod checked it
    return vote_share(inputs.cluster_ids)


def _most(n: int) -> float:
    return (n - 1) / n


VOTE_SHARE = FunctionMethod(
    name="vote_share",
    source="Wang et al. 2023, Self-Consistency, share of the majority",
    function=_vote_share,
    limits=Between(0.0, _most),
    needs=frozenset({"cluster_ids"}),
    default_similarity="exact",
)
"""One less the share of the largest cluster."""
