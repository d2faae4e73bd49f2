"""Every other reading against its number in the reference vectors."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.paper.readings import READINGS, component_clusters
from snne_guard.similarity import equivalence
from tests.scorers.vectors import (
    NEEDS_VECTORS,
    cases,
    expected_of,
    inputs_of,
    nli_of,
    similarity_for,
    vectors,
)

HEAT, MATERN = "heat_t=0.3", "matern_kappa=1.0_nu=1.0"

# Where the number is, on which similarity, and how many of 13 cases have it.
NUMBERS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "snne_without_self": (
        ("SNNE", "rougeL_answers", "tau=1|selfsim=False"),
        "rouge",
        13,
    ),
    "wsnne_without_self": (
        ("WSNNE", "rougeL_answers", "tau=1|selfsim=False"),
        "rouge",
        12,
    ),
    "wsnne_printed": (("WSNNE_literal_paper_weights_rougeL_tau1",), "rouge", 12),
    "ne_normalised": (("NE_alt_entropy_of_pbar",), "entail", 13),
    "lex_sim_question": (
        ("LexSim", "code_default_QA(question concatenated)"),
        "rouge with question",
        13,
    ),
    "deg_over_n": (("Deg_over_n",), "entail", 13),
    "luq_pair_premise": (("LUQ_pair_directed(i premise,j hyp)",), "entail", 12),
    "luq_pair_hypothesis": (("LUQ_pair_directed(j premise,i hyp)",), "entail", 12),
    "kle_heat_normalised": (
        ("KLE", "code_weighted", "heatn_t=0.3_kernel_entropy"),
        "entail",
        13,
    ),
    "kle_matern_normalised": (
        ("KLE", "code_weighted", "maternn_kappa=1.0_nu=1.0_kernel_entropy"),
        "entail",
        13,
    ),
    "kle_heat_unweighted": (
        ("KLE", "code_unweighted_bug_complete_graph", f"{HEAT}_kernel_entropy"),
        "entail",
        13,
    ),
    "kle_heat_confidence": (
        ("KLE", "code_weighted_deberta", f"{HEAT}_kernel_entropy"),
        "entail",
        13,
    ),
    "kle_matern_confidence": (
        ("KLE", "code_weighted_deberta", f"{MATERN}_kernel_entropy"),
        "entail",
        13,
    ),
    "kle_full_unweighted": (
        ("KLE", "code_full_weights_dropped", f"full_klu_{HEAT}_alpha_0.5"),
        "entail",
        12,
    ),
    "kle_semantic_overwritten": (
        ("KLE", "code_semantic_kernel_KLEc", f"semantic_kernel_{HEAT}_alpha_0.5"),
        "entail",
        13,
    ),
    "sar_inverted": (("SAR_code(inverted token weights)",), "sentence", 12),
    "token_sar_inverted": (("tokenSAR_code_inverted_mean",), "entail", 13),
    "eigen_score_official": (("EigenScore_official(log10, cov/(d-1))",), "entail", 13),
    "p_true_code": (("pTrue_code_p_false(1-logp)",), "entail", 13),
}


def test_every_reading_has_a_number() -> None:
    assert {*NUMBERS, "snne_full", "se_printed"} == {*READINGS}


@NEEDS_VECTORS
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    path, kind, count = NUMBERS[name]
    compared = 0
    for case in cases():
        expected = expected_of(case, path)
        if expected is None:
            continue
        inputs = inputs_of(case, similarity=similarity_for(case, kind))
        got = READINGS[name].compute(inputs)
        assert got == pytest.approx(expected, abs=1e-8), case["id"]
        compared += 1
    assert compared == count


@NEEDS_VECTORS
def test_semantic_entropy_with_the_printed_weights() -> None:
    for case in vectors()["theorems"]:
        inputs = SimpleNamespace(
            cluster_ids=np.array(case["partition"]),
            mean_logprobs=np.array(case["mean_logprobs"]),
        )
        expected = case["SE_literal(mean logp weights)"]
        got = READINGS["se_printed"].compute(inputs)
        assert got == pytest.approx(expected, abs=1e-9)


@NEEDS_VECTORS
def test_clusters_as_connected_components() -> None:
    for case in cases():
        expected = case["expected"]["semantic_ids"]["strict_dfs"]
        assert component_clusters(equivalence(nli_of(case))) == expected, case["id"]


def test_the_full_variant_of_snne() -> None:
    f = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    inputs = SimpleNamespace(similarity=f, cluster_ids=np.array([0, 0, 1]), tau=1.0)
    got = READINGS["snne_full"].compute(inputs)
    assert got == pytest.approx(6.6873, abs=1e-4)
