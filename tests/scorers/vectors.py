"""The reference vectors, which tests skip without: they lie outside the project."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import Method
from snne_guard.scorers.cluster_entropy import greedy_clusters
from snne_guard.scorers.kernel_entropy import edge_weights
from snne_guard.similarity import entail_similarity, equivalence
from snne_guard.types import FloatArray

Case = dict[str, Any]

PATH = Path(__file__).parents[3] / "shared" / "reference" / "vectors.json"
NEEDS_VECTORS = pytest.mark.skipif(not PATH.is_file(), reason="no ../shared/reference")


@cache
def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def cases() -> list[Case]:
    found: list[Case] = vectors()["cases"]
    return found


def settings_of(key: str) -> dict[str, Any]:
    """Read "tau=1|selfsim=True"."""
    tau, self_similarity = key.removeprefix("tau=").split("|selfsim=")
    return {"tau": float(tau), "include_self": self_similarity == "True"}


def nli_of(case: Case) -> FloatArray:
    return np.array(case["nli_probs[c,n,e][premise i][hyp j]"], dtype=float)


def importance_of(case: Case) -> tuple[FloatArray, ...]:
    similarities = case["token_similarity(full vs token removed)"]
    return tuple(1 - np.array(tokens) for tokens in similarities)


def inputs_of(case: Case, *, similarity: Any) -> SimpleNamespace:
    """Return all that the vectors know of a case, on one similarity."""
    return SimpleNamespace(
        tau=1.0,
        anchor=0.0,
        similarity=np.array(similarity, dtype=float),
        question=case["question"],
        answers=tuple(case["answers"]),
        mean_logprobs=np.array(case["expected"]["mean_logprob"]),
        token_logprobs=tuple(np.array(one) for one in case["token_logprobs"]),
        token_importance=importance_of(case),
        cluster_ids=greedy_clusters(equivalence(nli_of(case))),
        entailment=nli_of(case),
        graph=edge_weights(nli_of(case)),
        hidden_states=np.array(case["embeddings"]),
        p_true_logprob=case["p_true_logprob"],
    )


def similarity_for(case: Case, kind: str) -> Any:
    """Return a similarity matrix of a case by kind."""
    if kind == "entail":
        return entail_similarity(nli_of(case))
    if kind == "sentence":
        return case["sentence_similarity"]
    key = {
        "rouge": "rougeL_answers_nostem",
        "rouge stemmed": "rougeL_answers_stem",
        "rouge with question": "rougeL_with_question_nostem",
        "embed": "embed_cos",
    }[kind]
    return case["expected"][key]


def numbers_met(method: Method, kind: str, *path: str) -> int:
    """Compare a method with its numbers; return how many of 13 cases have one.

    The others are those in which the authors' code fails or underflows.
    """
    compared = 0
    for case in cases():
        found: Any = case["expected"]
        for key in path:
            found = "none" if isinstance(found, str) else found.get(key, "none")
        if found == "inf" and path[-1].startswith("tau="):
            found = float(
                "inf"
            )  # the formula's own; elsewhere a probability underflowed
        if isinstance(found, str):
            continue
        got = method.compute(inputs_of(case, similarity=similarity_for(case, kind)))
        tolerance = 1e-8 if "KLE" in path else 1e-9
        assert got == pytest.approx(float(found), abs=tolerance), case["id"]
        compared += 1
    return compared
