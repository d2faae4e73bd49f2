"""Every number of the reference vectors that SNNE and WSNNE can give."""

import math
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import METHODS, score, snne, uncertainty, wsnne
from snne_guard.types import MethodInputs
from tests.support.reference_vectors import NEEDS_VECTORS, vectors

TOLERANCE = 1e-9

pytestmark = NEEDS_VECTORS


def settings_of(key: str) -> tuple[float, bool]:
    tau, selfsim = key.removeprefix("tau=").split("|selfsim=")
    return float(tau), {"True": True, "False": False}[selfsim]


def test_matrix_cases() -> None:
    compared = 0
    for case in vectors()["matrix_cases"]:
        matrix, logprobs = case["similarity"], case["mean_logprobs"]
        for key, expected in case["SNNE"].items():
            tau, include_self = settings_of(key)
            got = snne(matrix, tau=tau, include_self=include_self)
            assert got == pytest.approx(float(expected), abs=TOLERANCE), case["id"]
            compared += 1
        for key, expected in case["WSNNE"].items():
            tau, include_self = settings_of(key)
            got = wsnne(matrix, logprobs, tau=tau, include_self=include_self)
            assert got == pytest.approx(float(expected), abs=TOLERANCE), case["id"]
            compared += 1
    assert compared == 80


def test_answers_of_the_cases() -> None:
    compared = 0
    for case in vectors()["cases"]:
        expected = case["expected"]
        matrix = np.array(expected["rougeL_answers_nostem"])
        logprobs = expected["mean_logprob"]
        for key, value in expected["SNNE"]["rougeL_answers"].items():
            tau, include_self = settings_of(key)
            got = snne(matrix, tau=tau, include_self=include_self)
            assert got == pytest.approx(float(value), abs=TOLERANCE), case["id"]
            compared += 1
        weighted = expected["WSNNE"]
        # The text in its place says that the authors' code underflows.
        values = {} if isinstance(weighted, str) else weighted["rougeL_answers"]
        for key, value in values.items():
            tau, include_self = settings_of(key)
            got = wsnne(matrix, logprobs, tau=tau, include_self=include_self)
            assert got == pytest.approx(float(value), abs=TOLERANCE), case["id"]
            compared += 1
        stable = expected["WSNNE_stable_rougeL_tau1"]
        assert wsnne(matrix, logprobs) == pytest.approx(stable, abs=TOLERANCE)
    assert compared >= 13 * 4


@pytest.mark.parametrize("kind", ["rougeL_with_question", "rougeL_answers_stem"])
def test_other_rouge_matrices_of_the_cases(kind: str) -> None:
    matrices = {
        "rougeL_with_question": "rougeL_with_question_nostem",
        "rougeL_answers_stem": "rougeL_answers_stem",
    }
    for case in vectors()["cases"]:
        matrix = case["expected"][matrices[kind]]
        for key, value in case["expected"]["SNNE"][kind].items():
            tau, include_self = settings_of(key)
            got = snne(matrix, tau=tau, include_self=include_self)
            assert got == pytest.approx(float(value), abs=TOLERANCE), case["id"]


def test_entailment_and_embedding_matrices_of_the_cases() -> None:
    compared = 0
    for case in vectors()["cases"]:
        for kind, matrix in (
            ("entail", entailment(case)),
            ("embed", cosine(case)),
        ):
            for key, value in case["expected"]["SNNE"].get(kind, {}).items():
                tau, include_self = settings_of(key)
                got = snne(matrix, tau=tau, include_self=include_self)
                assert got == pytest.approx(float(value), abs=TOLERANCE), case["id"]
                compared += 1
    assert compared > 0


def entailment(case: dict[str, Any]) -> Any:
    probabilities = np.array(case["nli_probs[c,n,e][premise i][hyp j]"])
    one_way = probabilities[:, :, 2]
    both = (one_way + one_way.T) / 2
    np.fill_diagonal(both, 1.0)
    return both


def cosine(case: dict[str, Any]) -> Any:
    vectors_ = np.array(case["embeddings"])
    units = vectors_ / np.linalg.norm(vectors_, axis=1, keepdims=True)
    return units @ units.T


def test_the_score_function_on_the_answers() -> None:
    """With the paper's tokens the whole path from texts to a number is compared."""
    compared = 0
    for case in vectors()["cases"]:
        answers = case["answers"]
        if any(not answer.strip() for answer in answers):
            continue
        got = score(answers, similarity="rouge_l_paper", method="snne")
        expected = case["expected"]["SNNE"]["rougeL_answers"]["tau=1|selfsim=True"]
        assert got.value == pytest.approx(expected, abs=TOLERANCE), case["id"]
        weighted = score(
            answers,
            token_logprobs=case["token_logprobs"],
            similarity="rouge_l_paper",
        )
        stable = case["expected"]["WSNNE_stable_rougeL_tau1"]
        assert weighted.method == "wsnne"
        assert weighted.value == pytest.approx(stable, abs=TOLERANCE), case["id"]
        compared += 1
    assert compared >= 10


def test_theorems() -> None:
    for case in vectors()["theorems"]:
        partition, tau = np.array(case["partition"]), case["tau"]
        logprobs = np.array(case["mean_logprobs"])
        same = partition[:, None] == partition[None, :]
        shares = np.exp(logprobs) / np.exp(logprobs).sum()
        dse = np.where(same, tau * math.log(1 / len(partition)), -math.inf)
        se = np.where(same, tau * np.log(shares)[None, :], -math.inf)
        without = case["SNNE_thm_dse_if_diagonal_excluded(theorem FAILS)"]

        assert snne(dse, tau=tau) == pytest.approx(case["DSE"], abs=TOLERANCE)
        assert wsnne(se, logprobs, tau=tau) == pytest.approx(
            case["SE(exp weights)"], abs=TOLERANCE
        )
        assert snne(dse, tau=tau, include_self=False) == pytest.approx(
            float(without), abs=TOLERANCE
        )


def test_limits_of_tau() -> None:
    rouge = vectors()["cases"][0]["expected"]["rougeL_answers_nostem"]
    low = "SNNE_rouge + 1/tau (selfsim) -> -mean_i log #{j: R_ij=1}"
    high = "-n*tau... (SNNE+log n)*tau (selfsim) -> -mean_ij R_ij"

    for case in vectors()["limits_tau_to_0"]:
        tau = case["tau"]
        assert snne(rouge, tau=tau) + 1 / tau == pytest.approx(case[low], abs=TOLERANCE)
    for case in vectors()["limits_tau_to_inf"]:
        tau = case["tau"]
        got = tau * (snne(rouge, tau=tau) + math.log(10))
        assert got == pytest.approx(case[high], abs=TOLERANCE)


def test_the_registered_methods_give_the_same_numbers() -> None:
    case = vectors()["cases"][0]["expected"]
    inputs = MethodInputs(
        similarity=np.array(case["rougeL_answers_nostem"]),
        mean_logprobs=np.array(case["mean_logprob"]),
    )
    value = METHODS["snne"].compute(inputs)

    assert value == pytest.approx(-2.75069792531828, abs=TOLERANCE)
    assert METHODS["wsnne"].compute(inputs) == pytest.approx(
        -2.7297340298495074, abs=TOLERANCE
    )
    assert METHODS["snne"].uncertainty(value, 10) == uncertainty(value, 10)
