"""Every number of the reference vectors that the families of methods can give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import (
    component_clusters,
    degree,
    discrete_semantic_entropy,
    eccentricity,
    eigenvalue_sum,
    greedy_clusters,
    lexical_similarity,
    luq,
    luq_pair,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
)
from snne_guard.similarity.entailment import (
    edge_weights,
    entail_similarity,
    entailment_ratio,
    equivalence,
)
from tests.support.reference_vectors import NEEDS_VECTORS, nli_of, vectors

pytestmark = NEEDS_VECTORS

Case = dict[str, Any]
LEX_SIM = "LexSim"


def clusters(case: Case) -> Any:
    return greedy_clusters(equivalence(nli_of(case)))


def entail(case: Case) -> Any:
    return entail_similarity(nli_of(case))


def ratio(case: Case) -> Any:
    return entailment_ratio(nli_of(case))


def logprobs(case: Case) -> Any:
    return case["expected"]["mean_logprob"]


# What the vectors call it, and how many of their 13 cases have it as a number.
SCALARS: dict[str, tuple[Callable[[Case], float], int]] = {
    "SE": (lambda case: semantic_entropy(clusters(case), logprobs(case)), 12),
    "SE_stable": (lambda case: semantic_entropy(clusters(case), logprobs(case)), 13),
    "DSE": (lambda case: discrete_semantic_entropy(clusters(case)), 13),
    "NumSet": (lambda case: semantic_set_count(clusters(case)), 13),
    "NE_code(-mean meanlogp)": (lambda case: naive_entropy(logprobs(case)), 13),
    "NE_alt_entropy_of_pbar": (
        lambda case: naive_entropy(logprobs(case), reading="normalised"),
        13,
    ),
    "SumEigv": (lambda case: eigenvalue_sum(entail(case)), 13),
    "Deg_code": (lambda case: degree(entail(case)), 13),
    "Deg_over_n": (lambda case: degree(entail(case), normalised=True), 13),
    "Eccen_thr0.9": (lambda case: eccentricity(entail(case)), 13),
    "LUQ_pair_code": (lambda case: luq_pair(ratio(case)), 13),
    "LUQ_pair_directed(i premise,j hyp)": (
        lambda case: luq_pair(ratio(case), reading="premise"),
        12,
    ),
    "LUQ_pair_directed(j premise,i hyp)": (
        lambda case: luq_pair(ratio(case), reading="hypothesis"),
        12,
    ),
    "LUQ_mean_directed(i premise,j hyp)": (lambda case: luq(ratio(case)), 12),
}


@pytest.mark.parametrize("key", SCALARS)
def test_numbers(key: str) -> None:
    function, cases = SCALARS[key]
    compared = 0
    for case in vectors()["cases"]:
        expected = case["expected"].get(key)
        # A text in a number's place says that the authors' code underflows.
        if expected is None or isinstance(expected, str):
            continue
        assert function(case) == pytest.approx(expected, abs=1e-9), case["id"]
        compared += 1
    assert compared == cases


@pytest.mark.parametrize(
    ("kind", "matrix"),
    [
        ("code_no_concat(TS,MT) / answers only", "rougeL_answers_nostem"),
        ("code_default_QA(question concatenated)", "rougeL_with_question_nostem"),
        ("answers_stem", "rougeL_answers_stem"),
    ],
)
def test_lexical_similarity(kind: str, matrix: str) -> None:
    for case in vectors()["cases"]:
        expected = case["expected"]
        got = lexical_similarity(expected[matrix])
        assert got == pytest.approx(expected[LEX_SIM][kind], abs=1e-9), case["id"]


@pytest.mark.parametrize("rule", [greedy_clusters, component_clusters])
def test_clusters(rule: Any) -> None:
    keys = {
        greedy_clusters: {
            "strict_greedy(default)": True,
            "nonstrict_greedy": False,
        },
        component_clusters: {"strict_dfs": True},
    }
    for case in vectors()["cases"]:
        for key, strict in keys[rule].items():
            ids = rule(equivalence(nli_of(case), strict=strict)).tolist()
            assert ids == case["expected"]["semantic_ids"][key], (case["id"], key)


def test_matrices() -> None:
    edges = 0
    for case in vectors()["cases"]:
        expected = case["expected"]
        assert np.allclose(entail(case), expected["entail_sym"], rtol=0, atol=1e-12)
        upper = np.triu(ratio(case), 1)
        mirrored = upper + upper.T + np.eye(len(upper))
        assert np.allclose(
            mirrored, expected["luq_matrix_code(upper mirrored)"], rtol=0, atol=1e-12
        )
        weights = expected["KLE"].get("W_manual")
        if weights is not None:
            assert edge_weights(nli_of(case)).tolist() == weights, case["id"]
            edges += 1
    assert edges >= 12


def test_the_masses_of_clusters_add_up_to_the_entropy() -> None:
    for case in vectors()["cases"]:
        masses = case["expected"]["cluster_probs"]
        if any(isinstance(mass, str) for mass in masses):
            continue
        entropy = -sum(mass * np.log(mass) for mass in masses)
        got = semantic_entropy(clusters(case), logprobs(case))
        assert got == pytest.approx(entropy, abs=1e-9), case["id"]


def test_theorems_hold_for_these_functions() -> None:
    for case in vectors()["theorems"]:
        partition, values = case["partition"], case["mean_logprobs"]
        assert discrete_semantic_entropy(partition) == pytest.approx(
            case["DSE"], abs=1e-9
        )
        assert semantic_entropy(partition, values) == pytest.approx(
            case["SE(exp weights)"], abs=1e-9
        )
