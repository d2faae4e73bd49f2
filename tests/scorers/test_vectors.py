"""Every method against its numbers in the reference vectors."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import METHODS, snne, wsnne
from snne_guard.scorers.cluster_entropy import greedy_clusters
from snne_guard.scorers.entailment import entailment_ratio
from snne_guard.scorers.kernel_entropy import (
    edge_weights,
    heat_kernel,
    kle_full,
    matern_kernel,
    unit_trace,
    von_neumann_entropy,
)
from snne_guard.scorers.relevance import token_sar
from snne_guard.similarity import equivalence
from tests.scorers.vectors import (
    NEEDS_VECTORS,
    cases,
    importance_of,
    inputs_of,
    nli_of,
    numbers_met,
    settings_of,
    similarity_for,
    vectors,
)

pytestmark = NEEDS_VECTORS

HEAT, MATERN = "heat_t=0.3", "matern_kappa=1.0_nu=1.0"
FULL = "intended_full_weights_kept"

# Method: on which similarity, and where its numbers are.
NUMBERS: dict[str, tuple[str, ...]] = {
    "snne": ("rouge", "SNNE", "rougeL_answers", "tau=1|selfsim=True"),
    "wsnne": ("rouge", "WSNNE_stable_rougeL_tau1"),
    "se": ("entail", "SE_stable"),
    "dse": ("entail", "DSE"),
    "ne": ("entail", "NE_code(-mean meanlogp)"),
    "num_set": ("entail", "NumSet"),
    "lex_sim": ("rouge", "LexSim", "code_no_concat(TS,MT) / answers only"),
    "sum_eigv": ("entail", "SumEigv"),
    "deg": ("entail", "Deg_code"),
    "eccen": ("entail", "Eccen_thr0.9"),
    "luq": ("entail", "LUQ_mean_directed(i premise,j hyp)"),
    "luq_pair": ("entail", "LUQ_pair_code"),
    "kle_heat": ("entail", "KLE", "code_weighted", f"{HEAT}_kernel_entropy"),
    "kle_matern": ("entail", "KLE", "code_weighted", f"{MATERN}_kernel_entropy"),
    "kle_full": ("entail", "KLE", FULL, f"full_klu_{HEAT}_alpha_0.5"),
    "sar": ("sentence", "SAR_correct"),
    "token_sar": ("sentence", "tokenSAR_correct_mean"),
    "sent_sar": ("sentence", "sentSAR_correct(t=0.001,sum logprob)"),
    "eigen_score": ("entail", "EigenScore_code(ln, Z J Z^T + 1e-3 I)"),
    "p_true": ("entail", "pTrue_p_false_fixed(1-exp logp)"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    assert numbers_met(METHODS[name], *NUMBERS[name]) >= 12


def check_snne(f: Any, logprobs: Any, expected: Any, weighted: Any) -> int:
    """Compare SNNE and WSNNE at every setting that the vectors have."""
    for key, value in expected.items():
        got = snne(f, **settings_of(key))
        assert got == pytest.approx(float(value), abs=1e-9), key
    for key, value in weighted.items():
        got = wsnne(f, logprobs, **settings_of(key))
        assert got == pytest.approx(float(value), abs=1e-9), key
    return len(expected) + len(weighted)


def test_snne_and_wsnne_at_every_tau() -> None:
    compared = sum(
        check_snne(
            case["similarity"], case["mean_logprobs"], case["SNNE"], case["WSNNE"]
        )
        for case in vectors()["matrix_cases"]
    )
    kinds = {
        "rougeL_answers": "rouge",
        "rougeL_with_question": "rouge with question",
        "rougeL_answers_stem": "rouge stemmed",
        "entail": "entail",
        "embed": "embed",
    }
    for case in cases():
        expected = case["expected"]
        logprobs, weighted = expected["mean_logprob"], expected["WSNNE"]
        for kind, values in expected["SNNE"].items():
            others = {} if isinstance(weighted, str) else weighted.get(kind, {})
            f = similarity_for(case, kinds[kind])
            compared += check_snne(f, logprobs, values, others)
    assert compared > 680


def test_clusters() -> None:
    for case in cases():
        ids = greedy_clusters(equivalence(nli_of(case))).tolist()
        expected = case["expected"]["semantic_ids"]["strict_greedy(default)"]
        assert ids == expected, case["id"]


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
            given = (inputs.graph, inputs.cluster_ids, inputs.mean_logprobs)
            got = kle_full(*given, alpha=float(alpha), kernel=kernel_of(name))
            assert got == pytest.approx(value, abs=1e-8), (case["id"], key)
            compared += 1
    assert compared >= 120


def test_token_sar_of_each_answer() -> None:
    for case in cases():
        pairs = zip(case["token_logprobs"], importance_of(case), strict=True)
        each = [token_sar([tokens], [weights]) for tokens, weights in pairs]
        expected = case["expected"]["tokenSAR_correct_per_answer"]
        assert each == pytest.approx(expected, abs=1e-9), case["id"]
