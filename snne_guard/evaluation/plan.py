"""Which methods run on which similarities, and why others do not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snne_guard.errors import ConfigurationError
from snne_guard.scorers import METHODS, Method, resolve_method
from snne_guard.similarity import SIMILARITIES, resolve_similarity
from snne_guard.types import Similarity

__all__ = ["BASELINE", "Row", "plan_rows"]

BASELINE = "answer_length"
"""The method that is in every table, so that nobody takes length for uncertainty."""

_UNUSED = resolve_similarity("exact")
_SPEC = re.compile(r"(?P<method>[^\[\]]+)(?:\[(?P<similarity>[^\[\]]+)\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table.

    Attributes:
        name: What runs, as ``dse[exact]``.
        method: The method.
        similarity: Name and callable of what compares the answers; never called where
            nothing does.
        skipped: Why the method cannot run, None where it can.
    """

    name: str
    method: Method
    similarity: tuple[str, Similarity]
    skipped: str | None = None


def plan_rows(
    methods: str | Sequence[str | Method],
    *,
    similarity: Sequence[str | Similarity] | None = None,
) -> tuple[Row, ...]:
    """Return what is to run, each once, in the order in which it was asked for.

    The options are those of ``evaluate``.

    Raises:
        ConfigurationError: A name is unknown, or the similarity in brackets cannot give
            what the method needs.

    Example:
        >>> [row.name for row in plan_rows(["dse", "perplexity"])]
        ['dse[exact]', 'perplexity', 'answer_length']
    """
    if isinstance(methods, str):
        methods = list(METHODS) if methods == "all" else methods.split(",")
    rows: dict[str, Row] = {}
    for method in [*methods, BASELINE]:
        for row in _rows(method, similarity):
            rows.setdefault(row.name, row)
    # The baseline stands last, wherever it was named.
    rows[BASELINE] = rows.pop(BASELINE)
    return tuple(rows.values())


def _rows(
    asked: str | Method, similarity: Sequence[str | Similarity] | None
) -> Iterator[Row]:
    method, bracket = _parsed(asked)
    if not method.compares_answers:
        if bracket is not None:
            msg = f"method {method.name!r} compares no answers; leave [...] off"
            raise ConfigurationError(msg)
        yield Row(name=method.name, method=method, similarity=_UNUSED)
        return
    if bracket is not None:
        name, compare = resolve_similarity(bracket)
        method.check_similarity(compare, name=name)
        usable = [(name, compare)]
    else:
        candidates = _defaults(method) if similarity is None else similarity
        resolved = map(resolve_similarity, candidates)
        usable = [pair for pair in resolved if _fits(method, *pair)]
    for name, compare in usable:
        row = f"{method.name}[{name}]"
        yield Row(name=row, method=method, similarity=(name, compare))
    if not usable:
        default = method.default_similarity
        yield Row(
            name=f"{method.name}[{default}]",
            method=method,
            similarity=_UNUSED,
            skipped=f"needs a similarity such as {default}:MODEL",
        )


def _parsed(asked: str | Method) -> tuple[Method, str | None]:
    if not isinstance(asked, str):
        return resolve_method(asked, logprobs=True), None
    parts = _SPEC.fullmatch(asked.strip())
    if parts is None or parts["method"] not in METHODS:
        known = ", ".join(METHODS)
        msg = f"expected 'all' or methods among {known}, got {asked!r}"
        raise ConfigurationError(msg)
    return METHODS[parts["method"]], parts["similarity"]


def _defaults(method: Method) -> Sequence[str]:
    """Return the similarities without a model on which a method makes sense."""
    if "cluster_ids" in method.needs:
        return ("exact",)
    default = method.default_similarity
    return tuple(
        dict.fromkeys(name for name in (default, "rouge_l") if name in SIMILARITIES)
    )


def _fits(method: Method, name: str, similarity: Similarity) -> bool:
    try:
        method.check_similarity(similarity, name=name)
    except ConfigurationError:
        return False
    return True
