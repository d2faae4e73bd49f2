"""Models behind similarities: loaded before a line is read, asked through a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from snne_guard.evaluation.comparison.cache import Cached, SimilarityCache
from snne_guard.evaluation.comparison.identity import identity_of
from snne_guard.evaluation.comparison.plan import relation_of
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import SIMILARITIES
from snne_guard.types import Similarity

__all__ = ["Opening"]

# What makes a model of each family be there.
_LOAD: Mapping[str, Callable[[Any], object]] = {
    "nli": lambda model: model.load(),
    "cross_encoder": lambda model: model.load(),
    "embedding": lambda model: model.vectors(["loaded"]),
}


class Opening:
    """Makes relations ready to be asked, each model once.

    A model that cannot be had fails here, and not again at every question.

    Args:
        store: Where what models say is kept, None for nowhere.
    """

    def __init__(self, store: SimilarityCache | None, /) -> None:
        self._store = store
        self._named: dict[str, Relation] = {}

    def model(self, given: str | Similarity, /) -> Relation:
        """Return the relation behind which a model is, by its name or itself.

        Raises:
            SnneGuardError: The model cannot be loaded.
        """
        if not isinstance(given, str):
            return self._kept(Relation.of(given), None)
        relation = relation_of(given)
        if relation.name not in self._named:
            load = _LOAD.get(given.partition(":")[0])
            if load is not None:
                load(relation.similarity)
            name = None if load is None else given
            self._named[relation.name] = self._kept(relation, name)
        return self._named[relation.name]

    def other(self, given: str | Similarity, /) -> Relation:
        """Return a relation that may have a model behind it, if its name says so.

        Raises:
            SnneGuardError: The model cannot be loaded.
        """
        if isinstance(given, str) and given not in SIMILARITIES:
            return self.model(given)
        return Relation.of(given)

    def _kept(self, relation: Relation, name: str | None) -> Relation:
        """Return what is asked through the cache, where it is known whose it is."""
        if self._store is None:
            return relation
        identity = identity_of(relation.similarity, name)
        if identity is None:
            return relation
        similarity = Cached(relation.similarity, self._store, identity)
        return replace(relation, similarity=similarity)
