"""Every reading by name against its number in the reference vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.scorers import READINGS, greedy_clusters, score
from snne_guard.similarity.entailment import (
    edge_weights,
    entail_similarity,
    equivalence,
)
from snne_guard.types import FloatArray, MethodInputs
from tests.support.reference_vectors import NEEDS_VECTORS, nli_of, vectors

pytestmark = NEEDS_VECTORS

Case = dict[str, Any]
ROUGE = "rouge_l_paper"
FULL = "full_klu_heat_t=0.3_alpha_0.5"

# Name; keys down to the number; how many of the 13 cases have it as a number.
EQUAL: dict[str, tuple[tuple[str, ...], int]] = {
    "snne_without_self": (("SNNE", "rougeL_answers", "tau=1|selfsim=False"), 13),
    "wsnne_without_self": (("WSNNE", "rougeL_answers", "tau=1|selfsim=False"), 12),
    "wsnne_printed": (("WSNNE_literal_paper_weights_rougeL_tau1",), 12),
    "ne_normalised": (("NE_alt_entropy_of_pbar",), 13),
    "lex_sim_question": (("LexSim", "code_default_QA(question concatenated)"), 13),
    "deg_over_n": (("Deg_over_n",), 13),
    "luq_pair_premise": (("LUQ_pair_directed(i premise,j hyp)",), 12),
    "luq_pair_hypothesis": (("LUQ_pair_directed(j premise,i hyp)",), 12),
    "kle_heat_normalised": (
        ("KLE", "code_weighted", "heatn_t=0.3_kernel_entropy"),
        13,
    ),
    "kle_matern_normalised": (
        ("KLE", "code_weighted", "maternn_kappa=1.0_nu=1.0_kernel_entropy"),
        13,
    ),
    "kle_heat_unweighted": (
        ("KLE", "code_unweighted_bug_complete_graph", "heat_t=0.3_kernel_entropy"),
        13,
    ),
    "kle_heat_confidence": (
        ("KLE", "code_weighted_deberta", "heat_t=0.3_kernel_entropy"),
        13,
    ),
    "kle_matern_confidence": (
        ("KLE", "code_weighted_deberta", "matern_kappa=1.0_nu=1.0_kernel_entropy"),
        13,
    ),
    "kle_full_unweighted": (("KLE", "code_full_weights_dropped", FULL), 12),
    "kle_clusters_overwritten": (
        (
            "KLE",
            "code_semantic_kernel_KLEc",
            "semantic_kernel_heat_t=0.3_alpha_0.5",
        ),
        13,
    ),
    "sar_inverted": (("SAR_code(inverted token weights)",), 12),
    "token_sar_inverted": (("tokenSAR_code_inverted_mean",), 13),
    "eigen_score_official": (("EigenScore_official(log10, cov/(d-1))",), 13),
    "p_true_code": (("pTrue_code_p_false(1-logp)",), 13),
}

# No number of the vectors is one of these; other tests hold them to literal formulas.
WITHOUT = {
    "snne_full",
    "snne_only_num",
    "snne_num_minus_denom",
    "se_printed",
    "num_set_compatible",
    "eccen_smallest",
    "luq_sentences",
    "kle_clusters",
    "semantic_density_forward",
}

ON_ROUGE = {"snne_without_self", "wsnne_without_self", "wsnne_printed"}


def test_every_reading_is_here() -> None:
    assert {*EQUAL} | WITHOUT == {*READINGS}


class Recorded:
    """Stands in for an NLI model that said what the vectors hold of these answers."""

    name = "nli:recorded"
    strict = True
    from_probabilities = True

    def __init__(self, case: Case) -> None:
        self.answers = case["answers"]
        self.table = nli_of(case)

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return entail_similarity(self.probabilities(texts, question=question))

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        # By the pairs, since equal texts have equal rows but for the diagonal.
        assert list(texts) == self.answers
        return self.table


class Told:
    """Stands in for a cross-encoder that said what the vectors hold."""

    name = "told"

    def __init__(self, case: Case) -> None:
        self.table = np.array(case["sentence_similarity"], dtype=float)

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        assert len(texts) == len(self.table)
        return self.table


def expected_of(case: Case, path: Sequence[str]) -> float | None:
    """Return the number, None where the authors' code has none."""
    found: Any = case["expected"]
    for key in path:
        if isinstance(found, str) or key not in found:
            return None
        found = found[key]
    if found == "inf" and path[-1].startswith("tau="):
        return math.inf  # the formula's own; elsewhere a probability was 0 as a float
    return None if isinstance(found, str) else float(found)


def importance_of(case: Case) -> tuple[FloatArray, ...]:
    similarities = case["token_similarity(full vs token removed)"]
    return tuple(1 - np.array(tokens) for tokens in similarities)


def inputs_of(case: Case, name: str) -> MethodInputs:
    expected, table = case["expected"], nli_of(case)
    if name in ON_ROUGE:
        similarity = np.array(expected["rougeL_answers_nostem"])
    elif name == "lex_sim_question":
        similarity = np.array(expected["rougeL_with_question_nostem"])
    elif name == "sar_inverted":
        similarity = np.array(case["sentence_similarity"])
    else:
        similarity = entail_similarity(table)
    return MethodInputs(
        similarity=similarity,
        question=case["question"],
        mean_logprobs=np.array(expected["mean_logprob"]),
        token_logprobs=tuple(np.array(one) for one in case["token_logprobs"]),
        token_importance=importance_of(case),
        cluster_ids=greedy_clusters(equivalence(table)),
        entailment=table,
        graph=edge_weights(table),
        hidden_states=np.array(case["embeddings"]),
        p_true_logprob=case["p_true_logprob"],
    )


def similarity_of(case: Case, name: str) -> Any:
    if name in ON_ROUGE:
        return ROUGE
    if name == "lex_sim_question":
        return None
    return Told(case) if name == "sar_inverted" else Recorded(case)


@pytest.mark.parametrize("name", EQUAL)
def test_the_number_of_a_reading(name: str) -> None:
    path, count = EQUAL[name]
    compared = 0
    for case in vectors()["cases"]:
        expected = expected_of(case, path)
        if expected is None:
            continue
        got = READINGS[name].compute(inputs_of(case, name))
        assert got == pytest.approx(expected, abs=1e-8), case["id"]
        compared += 1
    assert compared == count


@pytest.mark.parametrize("name", EQUAL)
def test_the_same_number_from_the_answers(name: str) -> None:
    path, _ = EQUAL[name]
    compared = 0
    for case in vectors()["cases"]:
        expected = expected_of(case, path)
        if expected is None or any(not text.strip() for text in case["answers"]):
            continue
        got = score(
            case["answers"],
            token_logprobs=case["token_logprobs"],
            question=case["question"],
            method=name,
            similarity=similarity_of(case, name),
            include_answer=False,
            known={
                "hidden_states": case["embeddings"],
                "token_importance": importance_of(case),
                "p_true_logprob": case["p_true_logprob"],
            },
        )
        assert got.method == name
        assert got.value == pytest.approx(expected, abs=1e-8), case["id"]
        compared += 1
    assert compared >= 9
