"""What methods are given of a reply set, and that each part is computed once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.scorers import METHODS, Inputs
from snne_guard.scorers.scoring import AnswerRole
from snne_guard.similarity import NLI
from snne_guard.types import FloatArray
from tests.scorers.support import (
    CLUSTERS,
    ENTAILMENT,
    GRAPH,
    IMPORTANCE,
    MEANS,
    SIMILARITY,
    STATES,
    TEXTS,
    TOKENS,
    Recorded,
    inputs,
    same,
)


def all_of(built: Inputs) -> dict[str, Any]:
    """Return all parts that some method needs."""
    needs = {need for method in METHODS.values() for need in method.needs}
    return {need: getattr(built, need) for need in needs}


def test_every_part() -> None:
    built = inputs()
    parts = all_of(built)
    assert built.answers == tuple(TEXTS)
    assert parts["similarity"].tolist() == SIMILARITY
    assert parts["cluster_ids"].tolist() == CLUSTERS
    assert parts["entailment"].tolist() == ENTAILMENT
    assert parts["graph"].tolist() == GRAPH
    assert [*parts["hidden_states"]] == STATES
    assert [one.tolist() for one in parts["token_logprobs"]] == TOKENS
    assert [*parts["token_importance"]] == IMPORTANCE
    assert parts["mean_logprobs"].tolist() == pytest.approx(MEANS)
    assert parts["main_answer"] == TEXTS[0]
    assert parts["main_logprobs"].tolist() == TOKENS[0]
    assert parts["p_true_logprob"] == -0.3


def test_an_answer_that_is_apart_is_no_member() -> None:
    built = inputs(answer="apart")
    apart, included = all_of(built), all_of(inputs())
    assert built.answers == tuple(TEXTS[1:])
    assert np.array_equal(apart["similarity"], included["similarity"][1:, 1:])
    assert np.array_equal(apart["entailment"], included["entailment"][1:, 1:])
    assert np.array_equal(apart["graph"], included["graph"][1:, 1:])
    assert apart["cluster_ids"].tolist() == [0, 1, 2]
    assert apart["mean_logprobs"].tolist() == pytest.approx(MEANS[1:])
    assert [*apart["hidden_states"]] == STATES[1:]
    assert apart["main_answer"] == TEXTS[0]
    assert apart["main_logprobs"].tolist() == TOKENS[0]


def test_without_an_answer_all_are_samples() -> None:
    built = inputs(answer="absent")
    parts = all_of(built)
    assert built.answers == tuple(TEXTS)
    assert parts["mean_logprobs"].tolist() == pytest.approx(MEANS)
    assert parts["main_answer"] is parts["main_logprobs"] is None


@pytest.mark.parametrize(
    ("answer", "name", "anchor"),
    [
        ("included", "content_f1", 0.7),
        ("absent", "content_f1", 0.0),
        ("included", "recorded", 0.0),
    ],
)
def test_the_anchor(answer: AnswerRole, name: str, anchor: float) -> None:
    assert inputs(answer=answer, name=name).anchor == anchor


def test_the_similarity_runs_once_and_only_where_it_is_needed() -> None:
    compare = Recorded()
    built = inputs(similarity=compare)
    METHODS["perplexity"].compute(built)
    assert compare.calls == 0
    for name in ("snne", "wsnne", "lex_sim", "deg"):
        METHODS[name].compute(built)
    assert compare.calls == 1


def test_an_nli_model_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def probabilities(self: NLI, texts: Sequence[str], /, **options: Any) -> FloatArray:
        del self, options
        asked.append(len(texts))
        return np.array(ENTAILMENT)

    monkeypatch.setattr(NLI, "probabilities", probabilities)
    built = Inputs(TEXTS, similarity=NLI(), name="nli")
    assert built.matrix is None
    for name in ("dse", "kle_heat", "luq", "snne", "num_set", "deg"):
        METHODS[name].compute(built)
    assert asked == [4]
    assert built.cluster_ids.tolist() == CLUSTERS
    assert built.similarity[0].tolist() == pytest.approx([1, 0.85, 0.075, 0.45])
    assert built.matrix is not None


def test_a_graph_without_entailment() -> None:
    built = Inputs(["a", "a", "b"], similarity=same, name="same")
    assert built.graph.tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("tokens", [None, [[-1.0], None, [-1.0], [-1.0]], [[]] * 4])
def test_log_probabilities_that_are_missing(tokens: Any) -> None:
    with pytest.raises(InputError, match="expected mean_logprobs for method"):
        METHODS["wsnne"].compute(inputs(token_logprobs=tokens))


def test_those_of_the_answer_alone() -> None:
    built = inputs(token_logprobs=[[-1.0], None, None, None])
    assert METHODS["perplexity"].compute(built) > 2
    without = inputs(token_logprobs=[None, [-1.0], [-1.0], [-1.0]])
    assert without.main_logprobs is None


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        (np.eye(3), r"shape \(4, 4\)"),
        (np.full((4, 4), np.nan), "got nan"),
        (np.full((4, 4), 1.5), r"in \[0, 1\], got 1.5"),
        (np.triu(np.ones((4, 4))), "symmetric"),
    ],
)
def test_what_is_no_similarity(matrix: Any, says: str) -> None:
    built = inputs(similarity=lambda texts, /, *, question=None: matrix)
    with pytest.raises(InputError, match=says):
        METHODS["snne"].compute(built)


def test_rounding_is_cut_off_and_the_diagonal_is_1() -> None:
    matrix = np.full((4, 4), 1 + 1e-12)
    np.fill_diagonal(matrix, 0.3)
    built = inputs(similarity=lambda texts, /, *, question=None: matrix)
    assert (built.similarity == 1).all()
    assert matrix[0, 0] == 0.3  # what the callable keeps is not written to


@pytest.mark.parametrize(
    "known", [{"hidden_states": STATES[:3]}, {"token_logprobs": [None]}]
)
def test_lengths_that_differ(known: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="for each of 4 texts"):
        inputs(**known)


def test_no_member() -> None:
    with pytest.raises(InputError, match="at least one text"):
        Inputs(["a"], similarity=same, name="same", answer="apart")
