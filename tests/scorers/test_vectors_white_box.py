"""Every number of the reference vectors for KLE, EigenScore, SAR and pTrue."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers.eigen_score import eigen_score
from snne_guard.scorers.graph_kernels import (
    heat_kernel,
    matern_kernel,
    normalised_kernel,
    von_neumann_entropy,
)
from snne_guard.scorers.kernel import kle_full, kle_heat, kle_semantic
from snne_guard.scorers.p_true import p_true
from snne_guard.scorers.sar import sar, sent_sar, token_sar
from snne_guard.similarity.entailment import edge_weights
from snne_guard.types import FloatArray
from tests.support.reference_vectors import NEEDS_VECTORS, nli_of, vectors

TOLERANCE = 1e-9
KLE_TOLERANCE = 1e-8

pytestmark = NEEDS_VECTORS

Case = dict[str, Any]


def cases() -> list[Case]:
    found: list[Case] = vectors()["cases"]
    return found


def kernel_of(key: str) -> Callable[[Any], FloatArray]:
    """Return the kernel that a key of the vectors names."""
    numbers = [float(number) for number in re.findall(r"(?:t|kappa|nu)=([\d.]+)", key)]
    normalised = key.startswith(("heatn", "maternn"))
    if key.startswith("heat"):
        return partial(heat_kernel, t=numbers[0], normalised=normalised)
    kappa, nu = numbers
    return partial(matern_kernel, kappa=kappa, nu=nu, normalised=normalised)


def entropy_of(key: str, weights: Any) -> float:
    kernel = normalised_kernel(kernel_of(key)(weights))
    return von_neumann_entropy(kernel, scaled=key.endswith("_s"))


def importance_of(case: Case) -> list[FloatArray]:
    similarities = case["token_similarity(full vs token removed)"]
    return [1 - np.array(tokens) for tokens in similarities]


@pytest.mark.parametrize(
    ("kind", "weights", "least"),
    [("code_weighted", "manual", 250), ("code_weighted_deberta", "confidence", 26)],
)
def test_kle(kind: str, weights: Any, least: int) -> None:
    compared = 0
    for case in cases():
        edges = edge_weights(nli_of(case), weights=weights)
        for key, value in case["expected"]["KLE"][kind].items():
            # The authors divide by ln 1 for one answer.
            expected = 0.0 if value == "-inf" else value
            got = entropy_of(key, edges)
            assert got == pytest.approx(expected, abs=KLE_TOLERANCE), case["id"]
            compared += 1
    assert compared >= least


def test_kle_of_the_complete_graph_that_the_authors_make_without_weights() -> None:
    key = "heat_t=0.3_kernel_entropy"
    for case in cases():
        n = len(case["answers"])
        expected = case["expected"]["KLE"]["code_unweighted_bug_complete_graph"][key]
        got = kle_heat(np.ones((n, n)))
        assert got == pytest.approx(expected, abs=KLE_TOLERANCE), case["id"]


@pytest.mark.parametrize(
    ("kind", "drop_weights"),
    [("intended_full_weights_kept", False), ("code_full_weights_dropped", True)],
)
def test_kle_full(kind: str, drop_weights: bool) -> None:
    compared = 0
    for case in cases():
        expected = case["expected"]
        values = expected["KLE"][kind]
        # The text in its place says that the authors' code fails.
        for key, value in ({} if isinstance(values, str) else values).items():
            name, alpha = key.removeprefix("full_klu_").split("_alpha_")
            got = kle_full(
                expected["KLE"]["W_manual"],
                expected["semantic_ids"]["strict_greedy(default)"],
                expected["mean_logprob"],
                alpha=float(alpha),
                kernel=kernel_of(name),
                drop_weights=drop_weights,
            )
            assert got == pytest.approx(value, abs=KLE_TOLERANCE), case["id"]
            compared += 1
    assert compared >= 120


def test_kle_on_clusters() -> None:
    for case in cases():
        expected = case["expected"]
        values = expected["KLE"]["code_semantic_kernel_KLEc"]
        got = kle_semantic(
            expected["KLE"]["W_manual"],
            expected["semantic_ids"]["strict_greedy(default)"],
            expected["mean_logprob"],
            overwrite=True,
        )
        value = values["semantic_kernel_heat_t=0.3_alpha_0.5"]
        assert got == pytest.approx(value, abs=KLE_TOLERANCE), case["id"]


def test_eigen_score() -> None:
    for case in cases():
        states, expected = case["embeddings"], case["expected"]
        code = expected["EigenScore_code(ln, Z J Z^T + 1e-3 I)"]
        official = expected["EigenScore_official(log10, cov/(d-1))"]
        assert eigen_score(states) == pytest.approx(code, abs=TOLERANCE), case["id"]
        got = eigen_score(states, reading="official")
        assert got == pytest.approx(official, abs=TOLERANCE), case["id"]


def test_token_sar() -> None:
    for case in cases():
        logprobs, importance = case["token_logprobs"], importance_of(case)
        expected = case["expected"]
        got = token_sar(logprobs, importance)
        assert got == pytest.approx(expected["tokenSAR_correct_mean"], abs=TOLERANCE)
        each = [
            token_sar([tokens], [weights])
            for tokens, weights in zip(logprobs, importance, strict=True)
        ]
        assert each == pytest.approx(
            expected["tokenSAR_correct_per_answer"], abs=TOLERANCE
        )
        inverted = token_sar(logprobs, importance, authors_bug=True)
        assert inverted == pytest.approx(
            expected["tokenSAR_code_inverted_mean"], abs=TOLERANCE
        )


def test_sar() -> None:
    compared = 0
    for case in cases():
        logprobs, importance = case["token_logprobs"], importance_of(case)
        similarity, expected = case["sentence_similarity"], case["expected"]
        got = {
            "SAR_correct": sar(logprobs, importance, similarity),
            "SAR_code(inverted token weights)": sar(
                logprobs, importance, similarity, authors_bug=True
            ),
            "sentSAR_correct(t=0.001,sum logprob)": sent_sar(logprobs, similarity),
        }
        for key, value in got.items():
            if not isinstance(expected[key], float):
                # Probabilities that are 0 as floats: infinite or undefined there.
                assert case["id"] == "extreme_logprobs"
                assert math.isfinite(value)
                continue
            assert value == pytest.approx(expected[key], abs=TOLERANCE), case["id"]
            compared += 1
    assert compared == 36


def test_p_true() -> None:
    for case in cases():
        logprob, expected = case["p_true_logprob"], case["expected"]
        assert p_true(logprob) == pytest.approx(
            expected["pTrue_p_false_fixed(1-exp logp)"], abs=TOLERANCE
        )
        assert p_true(logprob, reading="code") == pytest.approx(
            expected["pTrue_code_p_false(1-logp)"], abs=TOLERANCE
        )
