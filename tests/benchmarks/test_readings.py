"""Every other reading against its number in the reference vectors."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.paper.readings import READINGS, component_clusters
from snne_guard.similarity import equivalence
from tests.scorers.vectors import NEEDS_VECTORS, cases, nli_of, numbers_met, vectors

HEAT, MATERN = "heat_t=0.3", "matern_kappa=1.0_nu=1.0"
WITHOUT_SELF = ("rougeL_answers", "tau=1|selfsim=False")
DEBERTA, CLUSTERS = "code_weighted_deberta", "code_semantic_kernel_KLEc"

# On which similarity, and where the numbers are.
NUMBERS: dict[str, tuple[str, ...]] = {
    "snne_without_self": ("rouge", "SNNE", *WITHOUT_SELF),
    "wsnne_without_self": ("rouge", "WSNNE", *WITHOUT_SELF),
    "wsnne_printed": ("rouge", "WSNNE_literal_paper_weights_rougeL_tau1"),
    "ne_normalised": ("entail", "NE_alt_entropy_of_pbar"),
    "lex_sim_question": (
        *("rouge with question", "LexSim"),
        "code_default_QA(question concatenated)",
    ),
    "deg_over_n": ("entail", "Deg_over_n"),
    "luq_pair_premise": ("entail", "LUQ_pair_directed(i premise,j hyp)"),
    "luq_pair_hypothesis": ("entail", "LUQ_pair_directed(j premise,i hyp)"),
    "kle_heat_normalised": (
        *("entail", "KLE", "code_weighted"),
        "heatn_t=0.3_kernel_entropy",
    ),
    "kle_matern_normalised": (
        *("entail", "KLE", "code_weighted"),
        "maternn_kappa=1.0_nu=1.0_kernel_entropy",
    ),
    "kle_heat_unweighted": (
        *("entail", "KLE", "code_unweighted_bug_complete_graph"),
        f"{HEAT}_kernel_entropy",
    ),
    "kle_heat_confidence": ("entail", "KLE", DEBERTA, f"{HEAT}_kernel_entropy"),
    "kle_matern_confidence": ("entail", "KLE", DEBERTA, f"{MATERN}_kernel_entropy"),
    "kle_full_unweighted": (
        *("entail", "KLE", "code_full_weights_dropped"),
        f"full_klu_{HEAT}_alpha_0.5",
    ),
    "kle_semantic_overwritten": (
        *("entail", "KLE", CLUSTERS),
        f"semantic_kernel_{HEAT}_alpha_0.5",
    ),
    "sar_inverted": ("sentence", "SAR_code(inverted token weights)"),
    "token_sar_inverted": ("entail", "tokenSAR_code_inverted_mean"),
    "eigen_score_official": ("entail", "EigenScore_official(log10, cov/(d-1))"),
    "p_true_code": ("entail", "pTrue_code_p_false(1-logp)"),
}


def test_every_reading_has_a_number() -> None:
    assert {*NUMBERS, "snne_full", "se_printed"} == {*READINGS}


@NEEDS_VECTORS
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    assert numbers_met(READINGS[name], *NUMBERS[name]) >= 12


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
