"""Every method against its numbers in the reference vectors."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import (
    METHODS,
    edge_weights,
    entailment_ratio,
    greedy_clusters,
    heat_kernel,
    kle_full,
    matern_kernel,
    snne,
    token_sar,
    wsnne,
)
from snne_guard.scorers.kle import unit_trace, von_neumann_entropy
from snne_guard.similarity import equivalence
from tests.scorers.vectors import (
    NEEDS_VECTORS,
    cases,
    expected_of,
    importance_of,
    inputs_of,
    nli_of,
    settings_of,
    similarity_for,
    vectors,
)

pytestmark = NEEDS_VECTORS

# Method: where its number is, on which similarity, and how many of 13 cases have it.
# The others are those in which the authors' code underflows.
NUMBERS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "snne": (("SNNE", "rougeL_answers", "tau=1|selfsim=True"), "rouge", 13),
    "wsnne": (("WSNNE_stable_rougeL_tau1",), "rouge", 13),
    "se": (("SE_stable",), "entail", 13),
    "dse": (("DSE",), "entail", 13),
    "ne": (("NE_code(-mean meanlogp)",), "entail", 13),
    "num_set": (("NumSet",), "entail", 13),
    "lex_sim": (("LexSim", "code_no_concat(TS,MT) / answers only"), "rouge", 13),
    "sum_eigv": (("SumEigv",), "entail", 13),
    "deg": (("Deg_code",), "entail", 13),
    "eccen": (("Eccen_thr0.9",), "entail", 13),
    "luq": (("LUQ_mean_directed(i premise,j hyp)",), "entail", 12),
    "luq_pair": (("LUQ_pair_code",), "entail", 13),
    "kle_heat": (("KLE", "code_weighted", "heat_t=0.3_kernel_entropy"), "entail", 13),
    "kle_matern": (
        ("KLE", "code_weighted", "matern_kappa=1.0_nu=1.0_kernel_entropy"),
        "entail",
        13,
    ),
    "kle_full": (
        ("KLE", "intended_full_weights_kept", "full_klu_heat_t=0.3_alpha_0.5"),
        "entail",
        13,
    ),
    "sar": (("SAR_correct",), "sentence", 12),
    "token_sar": (("tokenSAR_correct_mean",), "sentence", 13),
    "sent_sar": (("sentSAR_correct(t=0.001,sum logprob)",), "sentence", 12),
    "eigen_score": (("EigenScore_code(ln, Z J Z^T + 1e-3 I)",), "entail", 13),
    "p_true": (("pTrue_p_false_fixed(1-exp logp)",), "entail", 13),
}

# Other papers' methods.
WITHOUT = {
    *("semantic_density", "cocoa_msp", "cocoa_ppl"),
    *("vote_share", "sequence_probability", "perplexity", "answer_length"),
}


def test_every_method_of_the_paper_has_a_number() -> None:
    assert {*NUMBERS} | WITHOUT == {*METHODS}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    path, kind, count = NUMBERS[name]
    compared = 0
    for case in cases():
        expected = expected_of(case, path)
        if expected is None:
            continue
        got = METHODS[name].compute(
            inputs_of(case, similarity=similarity_for(case, kind))
        )
        tolerance = 1e-8 if name.startswith("kle") else 1e-9
        assert got == pytest.approx(expected, abs=tolerance), case["id"]
        compared += 1
    assert compared >= count


def test_snne_and_wsnne_of_matrices() -> None:
    compared = 0
    for case in vectors()["matrix_cases"]:
        f, logprobs = case["similarity"], case["mean_logprobs"]
        for key, expected in case["SNNE"].items():
            got = snne(f, **settings_of(key))
            assert got == pytest.approx(float(expected), abs=1e-9), case["id"]
        for key, expected in case["WSNNE"].items():
            got = wsnne(f, logprobs, **settings_of(key))
            assert got == pytest.approx(float(expected), abs=1e-9), case["id"]
            compared += 2
    assert compared == 80


def test_snne_and_wsnne_of_the_cases_at_every_tau() -> None:
    kinds = {
        "rougeL_answers": "rouge",
        "rougeL_with_question": "rouge with question",
        "rougeL_answers_stem": "rouge stemmed",
        "entail": "entail",
        "embed": "embed",
    }
    compared = 0
    for case in cases():
        expected = case["expected"]
        for kind, values in expected["SNNE"].items():
            for key, value in values.items():
                got = snne(similarity_for(case, kinds[kind]), **settings_of(key))
                assert got == pytest.approx(float(value), abs=1e-9), case["id"]
                compared += 1
        weighted = expected["WSNNE"]
        for kind, values in ({} if isinstance(weighted, str) else weighted).items():
            for key, value in values.items():
                f = similarity_for(case, kinds[kind])
                got = wsnne(f, expected["mean_logprob"], **settings_of(key))
                assert got == pytest.approx(float(value), abs=1e-9), case["id"]
                compared += 1
    assert compared > 600


@pytest.mark.parametrize(
    ("key", "strict"), [("strict_greedy(default)", True), ("nonstrict_greedy", False)]
)
def test_clusters(key: str, *, strict: bool) -> None:
    for case in cases():
        ids = greedy_clusters(equivalence(nli_of(case), strict=strict)).tolist()
        assert ids == case["expected"]["semantic_ids"][key], case["id"]


def test_graphs() -> None:
    compared = 0
    for case in cases():
        expected = case["expected"]
        upper = np.triu(entailment_ratio(nli_of(case)), 1)
        mirrored = upper + upper.T + np.eye(len(upper))
        assert np.allclose(mirrored, expected["luq_matrix_code(upper mirrored)"])
        if "W_manual" in expected["KLE"]:
            weights = edge_weights(nli_of(case)).tolist()
            assert weights == expected["KLE"]["W_manual"], case["id"]
            compared += 1
    assert compared >= 12


def kernel_of(key: str) -> Any:
    """Return the kernel that a key of the vectors names."""
    numbers = [float(found) for found in re.findall(r"(?:t|kappa|nu)=([\d.]+)", key)]
    normalised = key.startswith(("heatn", "maternn"))
    if key.startswith("heat"):
        return partial(heat_kernel, t=numbers[0], normalised=normalised)
    kappa, nu = numbers
    return partial(matern_kernel, kappa=kappa, nu=nu, normalised=normalised)


def test_kernels_of_every_setting() -> None:
    compared = 0
    for case in cases():
        edges = edge_weights(nli_of(case))
        n = len(edges)
        for key, value in case["expected"]["KLE"]["code_weighted"].items():
            if value == "-inf":
                continue  # the authors divide by ln 1
            got = von_neumann_entropy(unit_trace(kernel_of(key)(edges)))
            scale = math.log(n) if key.endswith("_s") and n > 1 else 1.0
            assert got / scale == pytest.approx(value, abs=1e-8), (case["id"], key)
            compared += 1
    assert compared >= 250


def test_kle_full_of_every_setting() -> None:
    compared = 0
    for case in cases():
        inputs = inputs_of(case, similarity=similarity_for(case, "entail"))
        values = case["expected"]["KLE"]["intended_full_weights_kept"]
        for key, value in ({} if isinstance(values, str) else values).items():
            name, alpha = key.removeprefix("full_klu_").split("_alpha_")
            got = kle_full(
                np.array(inputs.graph),
                np.array(inputs.cluster_ids),
                np.array(inputs.mean_logprobs),
                alpha=float(alpha),
                kernel=kernel_of(name),
            )
            assert got == pytest.approx(value, abs=1e-8), (case["id"], key)
            compared += 1
    assert compared >= 120


def test_token_sar_of_each_answer() -> None:
    for case in cases():
        pairs = zip(case["token_logprobs"], importance_of(case), strict=True)
        each = [token_sar([tokens], [weights]) for tokens, weights in pairs]
        expected = case["expected"]["tokenSAR_correct_per_answer"]
        assert each == pytest.approx(expected, abs=1e-9), case["id"]


def test_underflow_of_the_code_is_finite_here() -> None:
    (case,) = [one for one in cases() if one["id"] == "extreme_logprobs"]
    for name in ("sar", "sent_sar", "wsnne", "se"):
        inputs = inputs_of(case, similarity=case["sentence_similarity"])
        assert math.isfinite(METHODS[name].compute(inputs)), name


def test_theorems() -> None:
    for case in vectors()["theorems"]:
        partition, tau = np.array(case["partition"]), case["tau"]
        logprobs = np.array(case["mean_logprobs"])
        same = partition[:, None] == partition[None, :]
        shares = np.exp(logprobs) / np.exp(logprobs).sum()
        dse = np.where(same, tau * math.log(1 / len(partition)), -math.inf)
        se = np.where(same, tau * np.log(shares)[None, :], -math.inf)
        without = case["SNNE_thm_dse_if_diagonal_excluded(theorem FAILS)"]
        assert snne(dse, tau=tau) == pytest.approx(case["DSE"], abs=1e-9)
        got = wsnne(se, logprobs, tau=tau)
        assert got == pytest.approx(case["SE(exp weights)"], abs=1e-9)
        got = snne(dse, tau=tau, include_self=False)
        assert got == pytest.approx(float(without), abs=1e-9)


def test_limits_of_tau() -> None:
    case = cases()[0]
    rouge, support = similarity_for(case, "rouge"), entailment_ratio(nli_of(case))
    low = "SNNE_rouge + 1/tau (selfsim) -> -mean_i log #{j: R_ij=1}"
    pair = "1+tau*SNNE(f=S_luq, diag excluded) -> LUQ_pair_directed"
    for limit in vectors()["limits_tau_to_0"]:
        tau = limit["tau"]
        assert snne(rouge, tau=tau) + 1 / tau == pytest.approx(limit[low], abs=1e-9)
        got = 1 + tau * snne(support, tau=tau, include_self=False)
        assert got == pytest.approx(limit[pair], abs=1e-9)
    high = "-n*tau... (SNNE+log n)*tau (selfsim) -> -mean_ij R_ij"
    for limit in vectors()["limits_tau_to_inf"]:
        tau = limit["tau"]
        got = tau * (snne(rouge, tau=tau) + math.log(10))
        assert got == pytest.approx(limit[high], abs=1e-9)
