"""What a method needs of a guarded call, and what of it was missing."""

from __future__ import annotations

from collections.abc import Sequence

from snne_guard.errors import ConfigurationError
from snne_guard.scorers.needs import (
    LOGPROB_NEEDS,
    MAIN_NEEDS,
    RELATION_NEEDS,
    check_relation,
)
from snne_guard.scorers.registry import without_logprobs
from snne_guard.scorers.relation import Relation
from snne_guard.types import Method, ResponseSet, Sample

__all__ = ["check_needs", "lacking"]

_MET = (
    LOGPROB_NEEDS | RELATION_NEEDS | MAIN_NEEDS | {"answers", "question", "sentence_of"}
)
"""What a guard knows of a response set."""


def check_needs(method: Method, relation: Relation, /) -> None:
    """Raise ConfigurationError where no guard can give a method what it needs."""
    missing = sorted(method.needs - _MET)
    if missing:
        msg = (
            f"method {method.name!r} needs {' and '.join(missing)}, which no "
            "guard has; score recordings with it instead"
        )
        raise ConfigurationError(msg)
    check_relation(method, relation)


def lacking(
    method: Method, members: Sequence[Sample], responses: ResponseSet, /
) -> tuple[str, ...]:
    """Name the log-probabilities that a method needs and nothing stands in for.

    Args:
        method: What was to score.
        members: Those that count, the answer first where it is one.
        responses: The set that they are from.
    """
    if without_logprobs(method) is not None:
        return ()
    needed: list[Sample] = []
    if "main_logprobs" in method.needs:
        needed.append(responses.answer)
    if "sample_mean_logprobs" in method.needs:
        needed.extend(members[int(responses.include_answer) :])
    if method.needs & {"mean_logprobs", "token_logprobs"}:
        needed.extend(members)
    known = all(one.token_logprobs for one in needed)
    return () if known else ("logprobs_missing",)
