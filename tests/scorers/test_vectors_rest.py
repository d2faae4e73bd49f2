"""The numbers of the reference vectors beside the methods: weights, pairs, limits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import luq_pair, semantic_entropy, snne, wsnne
from snne_guard.scorers.rows import printed_weights, row_logsumexp, softmax_weights
from snne_guard.similarity import rouge_l
from snne_guard.similarity.entailment import entail_similarity, entailment_ratio
from snne_guard.similarity.tokens import rouge_tokens
from tests.support.reference_vectors import NEEDS_VECTORS, nli_of, vectors

pytestmark = NEEDS_VECTORS

Case = dict[str, Any]


def close(expected: Any) -> Any:
    return pytest.approx(expected, abs=1e-9)


def test_means_and_sums_of_the_log_probabilities() -> None:
    for case in vectors()["cases"]:
        tokens, expected = case["token_logprobs"], case["expected"]
        sums = [math.fsum(one) for one in tokens]
        assert sums == close(expected["sum_logprob"])
        assert [
            total / len(one) for total, one in zip(sums, tokens, strict=True)
        ] == close(expected["mean_logprob"])


@pytest.mark.parametrize(
    ("weigh", "key", "cases"),
    [
        (softmax_weights, "pbar_exp(code)", 13),
        (printed_weights, "pbar_literal_paper(meanlogp/sum)", 12),
    ],
)
def test_what_an_answer_weighs(weigh: Any, key: str, cases: int) -> None:
    compared = 0
    for case in vectors()["cases"]:
        logprobs, expected = case["expected"]["mean_logprob"], case["expected"][key]
        if "nan" in expected:
            continue
        weights = weigh(logprobs, n=len(logprobs))
        assert weights.max() == 1
        assert (weights / weights.sum()).tolist() == close(expected), case["id"]
        compared += 1
    assert compared == cases


def test_wsnne_on_entailment() -> None:
    compared = 0
    for case in vectors()["cases"]:
        values = case["expected"]["WSNNE"]
        if isinstance(values, str):
            continue
        matrix = entail_similarity(nli_of(case))
        for key, value in values["entail"].items():
            tau, selfsim = key.removeprefix("tau=").split("|selfsim=")
            got = wsnne(
                matrix,
                case["expected"]["mean_logprob"],
                tau=float(tau),
                include_self=selfsim == "True",
            )
            assert got == close(float(value)), (case["id"], key)
            compared += 1
    assert compared == 96


def test_matrices_of_the_cases() -> None:
    for case in vectors()["cases"]:
        expected, answers = case["expected"], case["answers"]
        states = np.array(case["embeddings"])
        units = states / np.linalg.norm(states, axis=1, keepdims=True)
        assert np.allclose(units @ units.T, expected["embed_cos"], rtol=0, atol=1e-9)
        if case["id"] in {"cjk", "empty_after_tokenisation", "with_empty_string"}:
            continue  # equal texts are alike here, also without a token
        got = rouge_l(answers, tokens="rouge")
        assert np.allclose(got, expected["rougeL_answers_nostem"], rtol=0, atol=1e-12)


def test_pairs_of_rouge() -> None:
    compared = 0
    for pair in vectors()["rouge_pairs"]:
        one, other = pair["prediction"], pair["reference"]
        assert [*rouge_tokens(one)] == pair["tokens_prediction"]
        assert [*rouge_tokens(other)] == pair["tokens_reference"]
        precision, recall = pair["precision"], pair["recall"]
        both = precision + recall
        literal = 2 * precision * recall / both if both else 0.0
        assert pair["f"] == pytest.approx(literal, abs=1e-12)
        if one == other:
            continue  # equal texts are 1 here, also without a token
        got = rouge_l([one, other], tokens="rouge")[0, 1]
        assert got == pytest.approx(pair["f"], abs=1e-12), pair
        compared += 1
    assert compared >= 12


def test_logs_of_the_row_sums() -> None:
    for case in vectors()["matrix_cases"]:
        got = row_logsumexp(case["similarity"], tau=1.0)
        assert got.tolist() == close(case["row_logsumexp_tau1_selfsim"]), case["id"]


def test_the_theorem_of_se_with_either_weights() -> None:
    keys = {
        "code": ("WSNNE_thm_se(exp weights)", "SE(exp weights)"),
        "printed": (
            "WSNNE_literal(mean logp weights)",
            "SE_literal(mean logp weights)",
        ),
    }
    for case in vectors()["theorems"]:
        partition, tau = np.array(case["partition"]), case["tau"]
        logprobs = case["mean_logprobs"]
        same = partition[:, None] == partition[None, :]
        for reading, (of_wsnne, of_se) in keys.items():
            weigh = {"code": softmax_weights, "printed": printed_weights}[reading]
            weights = weigh(logprobs, n=len(logprobs))
            shares = np.log(weights / weights.sum())
            matrix = np.where(same, tau * shares[None, :], -math.inf)
            got = wsnne(matrix, logprobs, tau=tau, reading=reading)  # type: ignore[arg-type]
            assert got == close(case[of_wsnne])
            got = semantic_entropy(partition, logprobs, reading=reading)  # type: ignore[arg-type]
            assert got == close(case[of_se])


def test_the_theorem_of_dse() -> None:
    for case in vectors()["theorems"]:
        partition, tau = np.array(case["partition"]), case["tau"]
        same = partition[:, None] == partition[None, :]
        matrix = np.where(same, tau * math.log(1 / len(partition)), -math.inf)
        assert snne(matrix, tau=tau) == close(case["SNNE_thm_dse"])


def test_the_limit_of_luq_pair() -> None:
    case = vectors()["cases"][0]
    table = nli_of(case)
    support = entailment_ratio(table)
    # What the model says of an answer and itself is in this one alone.
    with_itself = table[:, :, 2] / (table[:, :, 2] + table[:, :, 0])
    for limit in vectors()["limits_tau_to_0"]:
        tau = limit["tau"]
        without = 1 + tau * snne(support, tau=tau, include_self=False)
        key = "1+tau*SNNE(f=S_luq, diag excluded) -> LUQ_pair_directed"
        assert without == close(limit[key])
        target = luq_pair(support, reading="premise")
        assert target == close(limit["target LUQ_pair_directed(i premise,j hyp)"])
        within = 1 + tau * snne(support, tau=tau)
        assert within == close(limit["1+tau*SNNE(f=S_luq, diag=1 included) -> 0"])
        literal = snne(tau * with_itself, tau=tau)
        key = "literal f=tau*P(entail): SNNE independent of tau"
        assert literal == close(limit[key])


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(keys_of(inner) for inner in value.values()))
    if isinstance(value, list):
        return set[str]().union(*(keys_of(inner) for inner in value))
    return set()


# What tests take apart and not by name, and what says nothing of a number.
TAKEN_APART = ("tau=", "heat", "matern", "full_klu_", "maxrej=")
ABOUT = {"meta", "n_cases", "nli_order", "non_finite", "condition_on_question_for_NLI"}
# A stemmer is an option that nothing here has; of pairs it is another number.
ELSEWHERE = {"f_stemmed"}


def test_no_key_of_the_vectors_is_left_out() -> None:
    tests = Path(__file__).parents[1]
    sources = "".join(
        path.read_text(encoding="utf-8") for path in tests.glob("*/test_*.py")
    )
    sources = sources.replace('"\n        "', "")  # a key on two lines
    left = {key for key in keys_of(vectors()) if key not in sources}

    assert {one for one in left - ABOUT if not one.startswith(TAKEN_APART)} <= ELSEWHERE
