"""The other readings by name: what they declare, and literal formulas of each."""

from __future__ import annotations

import dataclasses
import math
import pickle
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    METHODS,
    READINGS,
    component_clusters,
    eccentricity,
    eigenvalue_sum,
    kle_semantic,
    lexical_similarity,
    luq_sentences,
    resolve_method,
    score,
    semantic_density,
    semantic_entropy,
    snne_clustered,
)
from snne_guard.similarity import WithQuestion, rouge_l, rouge_l_paper
from snne_guard.similarity.entailment import entailment_ratio
from snne_guard.types import FloatArray, MethodInputs
from tests.support.entailing import Contains
from tests.support.graphs import clusterings, similarities

ANSWERS = ["It is Paris. Yes.", "Paris", "Paris!", "Lyon", "It is Lyon. No."]
LOGPROBS = [[-0.5, -0.1], [-0.25], [-0.1], [-2.0, -1.0], [-1.0]]


@pytest.mark.parametrize("name", READINGS)
def test_each_is_under_its_name_and_says_what_it_is(name: str) -> None:
    method = READINGS[name]
    fields = {field.name for field in dataclasses.fields(MethodInputs)}

    assert method.name == name
    assert name not in METHODS
    assert method.needs <= fields - {"tau", "metric"}
    assert re.search(r"\b20\d\d\b", method.source)
    assert method.partial_bounds(MethodInputs(similarity=np.eye(1)), 1) is None
    assert pickle.loads(pickle.dumps(method)) == method  # noqa: S301 - ours
    assert resolve_method(name, logprobs=False) is method


def test_which_of_them_look_inside_the_model() -> None:
    inside = {"logprob", "hidden_states", "token_importance"}
    for method in READINGS.values():
        needs = " ".join(method.needs)
        assert method.white_box == any(one in needs for one in inside), method.name


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        READINGS["mine"] = METHODS["snne"]  # type: ignore[index]


def test_an_unknown_name_is_told_both_kinds() -> None:
    with pytest.raises(ConfigurationError, match=r"'snne', .*'snne_full', .*'printed'"):
        resolve_method("printed", logprobs=True)


@pytest.mark.parametrize("name", READINGS)
def test_each_scores_answers_within_its_limits(name: str) -> None:
    method = READINGS[name]
    got = score(
        ANSWERS,
        token_logprobs=LOGPROBS,
        question="Which city?",
        method=name,
        similarity=None if method.with_question else Contains(),
        known={
            "hidden_states": [[1.0, 2.0, float(place)] for place in range(5)],
            "token_importance": [[0.5] * len(tokens) for tokens in LOGPROBS],
            "p_true_logprob": -0.25,
        },
    )

    assert got.method == name
    assert math.isfinite(got.value)
    limits = method.bounds(5)
    if limits is None:
        assert (got.uncertainty, got.reasons) == (None, ("no_bounds",))
    else:
        assert limits[0] <= got.value <= limits[1]
        assert got.uncertainty is not None
    assert method.uncertainty(got.value, 1) is None


BOUNDED = [method for method in READINGS.values() if method.limits is not None]


@pytest.mark.parametrize("method", BOUNDED, ids=lambda method: str(method.name))
@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
def test_limits_are_in_order(method: Any, tau: float) -> None:
    for n in range(2, 6):
        low, high = method.bounds(n, tau=tau)
        assert low < high
    low, high = method.bounds(1, tau=tau)
    assert low <= high


def literal(
    matrix: FloatArray, ids: Sequence[int], variant: str, tau: float, *, itself: bool
) -> float:
    """The variants as the authors' code has them, one sum after the other."""
    n = len(ids)
    total = 0.0
    for i in range(n):
        own = every = 0.0
        for j in range(n):
            if i != j or itself:
                every += math.exp(matrix[i, j] / tau)
                own += math.exp(matrix[i, j] / tau) if ids[i] == ids[j] else 0
        own, every = own or 1e-8, every or 1e-8
        if variant == "full":
            total += math.log(own / every)
        elif variant == "only_num":
            total += math.log(own)
        else:
            total += math.log(2 * own - every + n * math.exp(1 / tau))
    return -total / n


@given(
    similarities(),
    st.data(),
    st.sampled_from(["full", "only_num", "num_minus_denom"]),
    st.sampled_from([0.1, 1.0, 10.0]),
    st.booleans(),
)
def test_snne_of_clusters(
    matrix: FloatArray, data: st.DataObject, variant: Any, tau: float, itself: bool
) -> None:
    n = len(matrix)
    ids = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))

    got = snne_clustered(matrix, ids, variant=variant, tau=tau, include_self=itself)

    expected = literal(matrix, ids, variant, tau, itself=itself)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if not itself:
        method = READINGS[f"snne_{variant}"]
        inputs = MethodInputs(similarity=matrix, cluster_ids=np.array(ids), tau=tau)
        assert method.compute(inputs) == got
        low, high = method.bounds(n, tau=tau) or (0, 0)
        assert low - 1e-9 <= got <= high + 1e-9


@pytest.mark.parametrize(
    ("alike", "at"), [(True, 0), (False, 1)], ids=["lower", "upper"]
)
@pytest.mark.parametrize("variant", ["only_num", "num_minus_denom"])
def test_the_limits_of_clusters_are_reached(
    variant: Any, *, alike: bool, at: int
) -> None:
    """The upper one where all are alike as texts and none as clusters."""
    ids = [0] * 4 if alike else [0, 1, 2, 3]

    got = snne_clustered(np.ones((4, 4)), ids, variant=variant, tau=0.5)

    limits = READINGS[f"snne_{variant}"].bounds(4, tau=0.5)
    assert limits is not None
    assert got == pytest.approx(limits[at], abs=1e-12)


def test_one_cluster_is_nothing_to_the_full_variant() -> None:
    assert snne_clustered([[1, 0.2], [0.2, 1]], [3, 3]) == 0.0
    assert snne_clustered([[1]], [0]) == 0.0
    high = READINGS["snne_full"].bounds(3, tau=0.001)
    assert snne_clustered(np.ones((3, 3)), [0, 1, 2], tau=0.001) == high[1]  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        (([[1, 1.5], [1.5, 1]], [0, 0]), {}, InputError, "got 1.5"),
        (([[1, -0.5], [-0.5, 1]], [0, 0]), {}, InputError, "got -0.5"),
        (([[1, 0], [0, 1]], [0]), {}, InputError, "expected 2 cluster ids, got 1"),
        (([[1]], [0]), {"tau": 0}, ConfigurationError, "tau"),
        (([[1]], [0]), {"variant": "half"}, ConfigurationError, "got 'half'"),
    ],
)
def test_what_is_refused(
    arguments: Any, options: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        snne_clustered(*arguments, **options)


def test_without_the_diagonal_one_answer_has_no_neighbour() -> None:
    for name in ("snne_without_self", "wsnne_without_self"):
        assert READINGS[name].bounds(1) == (math.inf, math.inf)
        alike = READINGS[name].compute(
            MethodInputs(similarity=np.ones((3, 3)), mean_logprobs=-np.ones(3))
        )
        assert READINGS[name].uncertainty(alike, 3) == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.floats(-8, -0.01), min_size=1, max_size=6), st.data())
def test_se_by_the_printed_weights(values: list[float], data: st.DataObject) -> None:
    n = len(values)
    ids = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    shares = [
        sum(v for v, own in zip(values, ids, strict=True) if own == one) / sum(values)
        for one in set(ids)
    ]

    got = semantic_entropy(ids, values, reading="printed")

    expected = -sum(share * math.log(share) for share in shares)
    assert got == pytest.approx(expected, abs=1e-9)
    inputs = MethodInputs(
        similarity=np.eye(n), cluster_ids=np.array(ids), mean_logprobs=np.array(values)
    )
    assert READINGS["se_printed"].compute(inputs) == got


def test_sets_of_answers_that_do_not_contradict() -> None:
    texts = ["It is Paris", "Paris", "Who knows", "Lyon", "Lyon"]
    table = Contains().probabilities(texts)
    got = score(texts, method="num_set_compatible", similarity=Contains())

    label = table.argmax(axis=2)
    same = (label > 0) & (label > 0).T
    same[3, 4] = same[4, 3] = True
    np.fill_diagonal(same, val=True)
    assert got.value == len(set(component_clusters(same).tolist())) == 2


@given(similarities())
def test_as_many_eigenvectors_as_there_are_meanings(matrix: FloatArray) -> None:
    k = round(eigenvalue_sum(matrix))

    got = READINGS["eccen_smallest"].compute(MethodInputs(similarity=matrix))

    assert got == eccentricity(matrix, smallest=k)
    assert -1e-9 <= got <= math.sqrt(len(matrix) - 1) + 1e-9


def test_eigenvectors_with_one_eigenvalue_count_by_their_share() -> None:
    """Of n equal eigenvalues any basis will do: each gives k less the ones' part."""
    assert eccentricity(np.eye(4), smallest=2) == pytest.approx(math.sqrt(2 * 3 / 4))
    assert eccentricity(np.eye(4), smallest=4) == pytest.approx(math.sqrt(3))
    assert eccentricity(np.ones((4, 4)), smallest=1) == pytest.approx(0, abs=1e-7)
    blocks = np.kron(np.eye(2), np.ones((2, 2)))
    # One of the two vectors that say in which block an answer is.
    assert eccentricity(blocks, smallest=1) == pytest.approx(math.sqrt(1 / 2))


def test_luq_sentence_by_sentence() -> None:
    sentences = [
        "It is Paris.",
        "Yes.",
        "Paris",
        "Paris!",
        "Lyon",
        "It is Lyon.",
        "No.",
    ]
    ratio = entailment_ratio(Contains().probabilities(sentences))

    got = score(ANSWERS, method="luq_sentences", similarity=Contains())

    expected = luq_sentences(ratio, [0, 0, 1, 2, 3, 4, 4])
    assert got.value == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ConfigurationError, match="probabilities of entailment"):
        score(ANSWERS, method="luq_sentences", similarity="rouge_l")


@given(clusterings())
def test_kle_on_clusters(ids: list[int]) -> None:
    n = len(ids)
    graph, logprobs = np.ones((n, n)) - np.eye(n), -np.arange(1.0, n + 1)
    inputs = MethodInputs(
        similarity=np.eye(n),
        graph=graph,
        cluster_ids=np.array(ids),
        mean_logprobs=logprobs,
    )

    got = READINGS["kle_clusters"].compute(inputs)

    assert got == kle_semantic(graph, ids, logprobs)


def test_the_question_is_in_front_of_the_answers() -> None:
    question, answers = "Which city?", ["Paris", "Lyon", "It is Paris"]

    got = score(answers, question=question, method="lex_sim_question")

    matrix = rouge_l_paper([f"{question} {answer}" for answer in answers])
    assert got.value == pytest.approx(lexical_similarity(matrix))
    assert got.similarity == "rouge_l_paper+question"
    own = WithQuestion(rouge_l, "mine")
    mine = score(answers, question=question, method="lex_sim_question", similarity=own)
    assert mine.similarity == "mine"
    with pytest.raises(InputError, match="expected question for method"):
        score(answers, method="lex_sim_question")
    with pytest.raises(ConfigurationError, match="question in front of the answers"):
        score(answers, question="?", method="lex_sim_question", similarity="rouge_l")


def test_semantic_density_in_one_direction() -> None:
    got = score(
        ANSWERS,
        token_logprobs=LOGPROBS,
        method="semantic_density_forward",
        similarity=Contains(),
    )

    table = Contains().probabilities(ANSWERS)
    expected = semantic_density(
        np.stack([table[0, 1:], table[1:, 0]], axis=1),
        [sum(tokens) / len(tokens) for tokens in LOGPROBS[1:]],
        texts=ANSWERS[1:],
        main_mean_logprob=-0.3,
        directions="forward",
    )
    assert got.value == pytest.approx(expected, abs=1e-12)
