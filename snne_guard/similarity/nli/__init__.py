"""Natural language inference: whether one answer follows from another."""

from snne_guard.similarity.nli.entailment import (
    CLASSES,
    entail_similarity,
    equivalence,
)
from snne_guard.similarity.nli.model import DEFAULT_NLI_MODEL, NLI

__all__ = ["CLASSES", "DEFAULT_NLI_MODEL", "NLI", "entail_similarity", "equivalence"]
