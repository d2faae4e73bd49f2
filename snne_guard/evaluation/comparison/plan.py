"""Which methods run on which relations, and why others do not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation._importing import import_object
from snne_guard.evaluation.results import Status
from snne_guard.scorers import METHODS, READINGS
from snne_guard.scorers.needs import RELATION_NEEDS, check_relation
from snne_guard.scorers.registry import default_similarity, resolve_method
from snne_guard.scorers.relation import Relation
from snne_guard.similarity.registry import FAMILIES
from snne_guard.types import Method

__all__ = [
    "BASELINE",
    "Planned",
    "Tools",
    "names_in_brackets",
    "plan_methods",
    "relation_of",
]

BASELINE = "answer_length"
"""The method that is in every table, so that nobody takes length for uncertainty."""

_GROUPS: Mapping[str, Mapping[str, Method]] = {"all": METHODS, "readings": READINGS}

_SPEC = re.compile(r"(?P<method>[^\[\],]+)(?:\[(?P<relation>[^\[\]]+)\])?")
_NAME = re.compile(r"[^\[\],]+")
_PARTS = ("name", "needs", "white_box", "source", "compute", "bounds", "uncertainty")
_NLI = "nli"

# What a need that no recording answers by itself can be had from, in words.
_GIVEN = {
    "hidden_states": "needs a field hidden_states or an embedding model (--embedding)",
    "token_importance": "needs a field token_importance or a cross-encoder with the "
    "tokens' texts (--cross-encoder)",
    "p_true_logprob": "needs a field p_true_logprob or the model itself (--model)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What is at hand to compare answers with, and to meet other needs.

    Attributes:
        graded: Similarities that run without a model, for methods on a matrix.
        equal: Equivalences that run without a model, for methods on clusters.
        models: Relations behind which a model is.
        given: Needs that the recordings or a provider meet.
        named: What a name in brackets means, where it is made already.
        usual: Similarities that run for those methods alone which take them by default.
    """

    graded: tuple[Relation, ...]
    equal: tuple[Relation, ...]
    models: tuple[Relation, ...] = ()
    given: frozenset[str] = frozenset()
    named: Mapping[str, Relation] = field(default_factory=dict[str, Relation])
    usual: tuple[Relation, ...] = ()

    def relations(self, method: Method) -> Iterator[Relation]:
        """Yield the relations on which a method makes sense, without a model first."""
        own = self.equal if "cluster_ids" in method.needs else self.graded
        if getattr(method, "with_question", False):
            own = tuple(relation.asked() for relation in own)
        default = default_similarity(method)
        usual = (one for one in self.usual if one.name == default)
        for relation in (*usual, *own, *self.models):
            try:
                check_relation(method, relation)
            except ConfigurationError:
                continue
            yield relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One row of the table to be.

    Attributes:
        name: What runs, as ``dse[exact]``.
        method: The method.
        relation: What compares the answers, None where nothing does.
        status: Whether it can be evaluated.
        why: Why it cannot.
    """

    name: str
    method: Method
    relation: Relation | None = None
    status: Status = "evaluated"
    why: str | None = None


def plan_methods(
    methods: str | Sequence[str | Method], tools: Tools, /
) -> tuple[Planned, ...]:
    """Return what is to run, each once, in the order in which it was asked for.

    Args:
        methods: ``"all"``, ``"readings"``, names with commas between them, or a
            sequence of names and methods of your own. A name is a key of ``METHODS`` or
            ``READINGS``, or ``module:object``; with ``[relation]`` behind it the method
            runs on that one, else on every one at hand.
        tools: What is at hand.

    Raises:
        ConfigurationError: A name is unknown, or the relation in brackets cannot give
            what the method needs; an object is no method, or has the name of another.

    Example:
        >>> tools = Tools(graded=(Relation.of("rouge_l"),), equal=())
        >>> [planned.name for planned in plan_methods("snne", tools)]
        ['snne[rouge_l]', 'answer_length']
    """
    rows: dict[str, Planned] = {}
    asked = [*_asked(methods, tools.named), (METHODS[BASELINE], None)]
    _check_names(method for method, _ in asked)
    for method, relation in asked:
        for planned in _rows(method, relation, tools):
            rows.setdefault(planned.name, planned)
    return tuple(rows.values())


def names_in_brackets(methods: str | Sequence[str | Method], /) -> tuple[str, ...]:
    """Return the names of relations that stand in brackets, each once.

    Example:
        >>> names_in_brackets("snne, dse[nli], luq[nli], dse[exact]")
        ('nli', 'exact')
    """
    asked = _split(methods) if isinstance(methods, str) else methods
    found = (_SPEC.fullmatch(one) for one in asked if isinstance(one, str))
    inside = (one["relation"] for one in found if one is not None and one["relation"])
    return tuple(dict.fromkeys(inside))


def _asked(
    methods: str | Sequence[str | Method], named: Mapping[str, Relation]
) -> Iterator[tuple[Method, Relation | None]]:
    asked = _split(methods) if isinstance(methods, str) else methods
    for one in asked:
        if not isinstance(one, str):
            yield _own(one, "a method of your own"), None
        elif one in _GROUPS:
            yield from ((method, None) for method in _GROUPS[one].values())
        else:
            yield _parsed(one, named)


def _split(methods: str) -> list[str]:
    # A comma within brackets belongs to a model's name.
    parts = (part.strip() for part in re.split(r",(?![^\[]*\])", methods))
    return [part for part in parts if part]


def _parsed(text: str, named: Mapping[str, Relation]) -> tuple[Method, Relation | None]:
    found = _SPEC.fullmatch(text)
    if found is None:
        msg = f"expected a method as name or name[relation], got {text!r}"
        raise ConfigurationError(msg)
    method, relation = _method(found["method"]), None
    if found["relation"] is not None:
        inside = found["relation"]
        relation = named[inside] if inside in named else relation_of(inside)
        if not method.needs & RELATION_NEEDS:
            msg = f"method {method.name!r} compares no answers; leave [...] off"
            raise ConfigurationError(msg)
        check_relation(method, relation)
    return method, relation


def relation_of(name: str, /) -> Relation:
    """Return the relation that a name means: a known one, or ``module:object``.

    Raises:
        ConfigurationError: There is no such relation.
    """
    family, colon, _ = name.partition(":")
    if colon and family not in FAMILIES:
        return Relation.of(import_object(name), name=name)
    return Relation.of(name)


def _method(name: str) -> Method:
    for known in _GROUPS.values():
        if name in known:
            return known[name]
    if "+" in name:
        return resolve_method(name, logprobs=True)
    if ":" not in name:
        msg = (
            f"expected 'all', 'readings', module:object, one of {[*METHODS]} or one of "
            f"the readings {[*READINGS]}, got {name!r}"
        )
        raise ConfigurationError(msg)
    return _own(import_object(name), repr(name))


def _own(found: Any, what: str) -> Method:  # noqa: ANN401 - whatever a user has
    """Return what is a method as far as one can see before it runs."""
    for part in _PARTS:
        if not hasattr(found, part):
            msg = f"expected {what} to be a method, it has no {part!r}"
            raise ConfigurationError(msg)
    for part in ("compute", "bounds", "uncertainty"):
        if not callable(getattr(found, part)):
            msg = f"expected {what} to be a method, its {part!r} cannot be called"
            raise ConfigurationError(msg)
    if not isinstance(found.needs, frozenset):
        kind = type(found.needs).__name__
        msg = f"expected the needs of {what} to be a frozenset, got {kind}"
        raise ConfigurationError(msg)
    if not isinstance(found.name, str) or not _NAME.fullmatch(found.name):
        msg = f"expected {what} to have a name without [ ] , in it, got {found.name!r}"
        raise ConfigurationError(msg)
    return cast("Method", found)


def _check_names(methods: Iterable[Method]) -> None:
    """Refuse two methods under one name: each would hide the other."""
    ours: dict[str, Method] = {**METHODS, **READINGS}
    known = dict(ours)
    for method in methods:
        if known.setdefault(method.name, method) is not method:
            whose = "this library" if method.name in ours else "another of your own"
            msg = f"a method of {whose} is named {method.name!r} too; rename yours"
            raise ConfigurationError(msg)


def _rows(method: Method, relation: Relation | None, tools: Tools) -> Iterable[Planned]:
    lacking = sorted(method.needs & set(_GIVEN) - tools.given)
    if lacking:
        yield _left_out(method, relation, status="skipped", why=_GIVEN[lacking[0]])
    elif not method.needs & RELATION_NEEDS:
        yield Planned(name=method.name, method=method)
    elif relation is not None:
        yield _on(method, relation)
    else:
        found = [*tools.relations(method)]
        yield from (_on(method, one) for one in found)
        if _wants_nli(method) and not any(one.entails for one in found):
            why = "formula verified, not evaluated: needs an NLI model (--nli)"
            yield _left_out(method, None, status="formula_verified", why=why)


def _on(method: Method, relation: Relation) -> Planned:
    name = f"{method.name}[{relation.name}]"
    return Planned(name=name, method=method, relation=relation)


def _left_out(
    method: Method, relation: Relation | None, *, status: Status, why: str
) -> Planned:
    inside = _NLI if relation is None and status == "formula_verified" else None
    inside = relation.name if relation is not None else inside
    name = method.name if inside is None else f"{method.name}[{inside}]"
    return Planned(name=name, method=method, relation=relation, status=status, why=why)


def _wants_nli(method: Method) -> bool:
    return default_similarity(method) == _NLI or "entailment" in method.needs
