"""Each part of a response set is worked out once, and every method gets its own."""

import dataclasses
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.needs import check_relation
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import exact, rouge_l
from snne_guard.types import BoolArray, FloatArray, MethodInputs

TEXTS = ["Paris", "It is Paris", "Lyon", "Paris"]
LOGPROBS = [[-0.5, -0.1], [-1.0], [-2.0, -2.0, -2.0], [-0.25]]


class Entailing:
    """An NLI model of two rules: equal texts entail each other, a longer one a part."""

    name = "nli:rules"
    from_probabilities = True

    def __init__(self) -> None:
        self.calls = 0

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        self.calls += 1
        yes, no = (0.1, 0.1, 0.8), (0.7, 0.2, 0.1)
        return np.array([[yes if b in a else no for b in texts] for a in texts])

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del texts, question
        raise AssertionError


class Same:
    """Texts that are equal mean the same."""

    name = "same"

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        del question
        self.seen.append(tuple(texts))
        return np.array([[a == b for b in texts] for a in texts])

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return self.equivalent(texts, question=question).astype(float)


def needing(*needs: str) -> FunctionMethod:
    return FunctionMethod(
        name="m", source="a test", function=lambda _: 0.0, needs=frozenset(needs)
    )


def of(materials: Materials, relation: Relation, *needs: str) -> Any:
    return materials.inputs(needing(*needs), relation)


def test_the_delivered_answer_is_a_member_or_not() -> None:
    relation = Relation.of("rouge_l")
    whole = Materials(TEXTS, token_logprobs=LOGPROBS)
    without = Materials(TEXTS, token_logprobs=LOGPROBS, include_answer=False)
    samples = Materials(TEXTS, token_logprobs=LOGPROBS, delivered=False)
    needs = ("similarity", "answers", "mean_logprobs", "token_logprobs")

    for materials, first in ((whole, 0), (without, 1), (samples, 0)):
        inputs = of(materials, relation, *needs)
        assert inputs.answers == tuple(TEXTS[first:])
        np.testing.assert_array_equal(inputs.similarity, rouge_l(TEXTS[first:]))
        means = [sum(one) / len(one) for one in LOGPROBS[first:]]
        assert inputs.mean_logprobs.tolist() == means
        assert [one.tolist() for one in inputs.token_logprobs] == LOGPROBS[first:]


def test_what_is_known_of_the_delivered_answer() -> None:
    relation = Relation.of("rouge_l")
    needs = ("main_answer", "main_logprobs", "main_similarity", "sample_mean_logprobs")

    for include_answer in (True, False):
        materials = Materials(
            TEXTS, token_logprobs=LOGPROBS, include_answer=include_answer
        )
        inputs = of(materials, relation, *needs)
        assert inputs.main_answer == "Paris"
        assert inputs.main_logprobs.tolist() == LOGPROBS[0]
        assert inputs.main_similarity.tolist() == rouge_l(TEXTS)[0, 1:].tolist()
        assert inputs.sample_mean_logprobs.tolist() == [-1.0, -2.0, -0.25]


@pytest.mark.parametrize(
    "need", ["main_answer", "main_logprobs", "main_similarity", "main_entailment"]
)
def test_samples_alone_have_no_delivered_answer(need: str) -> None:
    materials = Materials(TEXTS, token_logprobs=LOGPROBS, delivered=False)

    with pytest.raises(InputError, match=f"expected {need} for method 'm', got none"):
        of(materials, Relation.of(Entailing()), need)


@pytest.mark.parametrize(
    "logprobs", [None, [[-1.0], [-1.0], [], [-1.0]], [None, [-1.0], [-1.0], None]]
)
@pytest.mark.parametrize("need", ["mean_logprobs", "token_logprobs"])
def test_log_probabilities_are_there_for_all_members_or_none(
    need: str, logprobs: Any
) -> None:
    with pytest.raises(InputError, match=f"expected {need}"):
        of(Materials(TEXTS, token_logprobs=logprobs), Relation.of("rouge_l"), need)


def test_those_of_the_delivered_answer_may_be_missing() -> None:
    logprobs = [None, [-1.0], [-2.0], [-3.0]]
    relation = Relation.of("rouge_l")
    materials = Materials(TEXTS, token_logprobs=logprobs, include_answer=False)

    assert of(materials, relation, "mean_logprobs").mean_logprobs.tolist() == [
        -1.0,
        -2.0,
        -3.0,
    ]
    member = Materials(TEXTS, token_logprobs=logprobs)
    means = of(member, relation, "sample_mean_logprobs").sample_mean_logprobs
    assert means.tolist() == [-1.0, -2.0, -3.0]
    with pytest.raises(InputError, match="expected main_logprobs"):
        of(materials, relation, "main_logprobs")
    with pytest.raises(InputError, match="expected main_logprobs"):
        of(Materials(TEXTS), relation, "main_logprobs")


def test_a_list_of_log_probabilities_becomes_an_array_once() -> None:
    materials = Materials(TEXTS, token_logprobs=LOGPROBS)
    relation = Relation.of("rouge_l")
    every = of(materials, relation, "token_logprobs").token_logprobs
    main = of(materials, relation, "main_logprobs").main_logprobs
    both = of(materials, relation, "mean_logprobs", "sample_mean_logprobs")

    assert main is every[0]
    assert both.sample_mean_logprobs.tolist() == both.mean_logprobs[1:].tolist()


def test_a_method_that_forgot_to_say_what_it_needs_gets_no_number() -> None:
    inputs = of(Materials(TEXTS), Relation.of("rouge_l"), "answers")

    assert inputs.similarity.shape == (4, 4)
    assert np.isnan(inputs.similarity).all()


def test_inputs_are_the_same_whoever_makes_them() -> None:
    inputs: MethodInputs = of(Materials(TEXTS), Relation.of("rouge_l"), "answers")

    assert inputs == MethodInputs(
        similarity=inputs.similarity, answers=tuple(TEXTS), metric=True
    )
    assert repr(inputs) == repr(dataclasses.replace(inputs))
    assert pickle.loads(pickle.dumps(inputs)).answers == tuple(TEXTS)  # noqa: S301 - ours
    assert inputs.mean_logprobs is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        inputs.tau = 2.0  # type: ignore[misc]


def test_methods_with_the_same_needs_get_the_same() -> None:
    materials = Materials(TEXTS, question="Capital?")
    rouge, exact = Relation.of("rouge_l"), Relation.of("exact")
    first = materials.inputs(METHODS["lex_sim"], rouge)

    assert materials.inputs(METHODS["deg"], rouge) is first
    assert materials.inputs(METHODS["deg"], rouge, tau=2.0).tau == 2.0
    assert materials.inputs(METHODS["deg"], exact).similarity[0, 1] == 0.0
    unseen = of(materials, rouge, "answers").similarity
    assert of(materials, rouge, "question").similarity is unseen


def test_each_relation_runs_once_whoever_asks() -> None:
    model, same = Entailing(), Same()
    materials = Materials(TEXTS, include_answer=False)
    needs = ("similarity", "entailment", "cluster_ids", "graph", "main_entailment")
    for _ in range(2):
        inputs = of(materials, Relation.of(model), *needs)
        of(materials, Relation.of(same), "cluster_ids")

    assert (model.calls, same.seen) == (1, [tuple(TEXTS)])
    assert inputs.entailment.shape == (3, 3, 3)
    assert inputs.main_entailment.shape == (3, 2, 3)
    # "It is Paris" entails "Paris", and not the other way round.
    assert inputs.main_entailment[0, :, 2].tolist() == [0.1, 0.8]
    assert inputs.cluster_ids.tolist() == [0, 1, 2]
    assert inputs.similarity[0, 2] == pytest.approx(0.45)
    assert inputs.graph[0].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("include_answer", [True, False])
def test_what_matches_is_alike_to_the_last_bit(include_answer: bool) -> None:
    materials = Materials(TEXTS, include_answer=include_answer)
    inputs = of(materials, Relation.of("exact"), "similarity", "cluster_ids")

    members = TEXTS if include_answer else TEXTS[1:]
    np.testing.assert_array_equal(inputs.similarity, exact(members))
    assert inputs.similarity.dtype == np.float64


def test_two_relations_of_one_set_are_kept_apart() -> None:
    materials = Materials(TEXTS)
    one = of(materials, Relation.of("rouge_l"), "similarity").similarity
    other = of(materials, Relation.of(Same()), "similarity").similarity

    assert one[0, 1] == 0.5
    assert other[0, 1] == 0.0


def test_a_similarity_is_a_graph_too() -> None:
    graph = of(Materials(TEXTS), Relation.of("rouge_l"), "graph").graph

    expected = 2 * rouge_l(TEXTS)  # both directions, as with an NLI model
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_array_equal(graph, expected)


def test_what_nobody_can_work_out_is_handed_in() -> None:
    states = np.arange(8.0).reshape(4, 2)
    materials = Materials(
        TEXTS,
        include_answer=False,
        question="Capital?",
        known={
            "hidden_states": states,
            "token_importance": [np.ones(2)] * 4,
            "p_true_logprob": -0.5,
        },
    )
    needs = ("hidden_states", "token_importance", "p_true_logprob", "question")
    inputs = of(materials, Relation.of("rouge_l"), *needs)

    np.testing.assert_array_equal(inputs.hidden_states, states[1:])
    assert len(inputs.token_importance) == 3
    assert inputs.p_true_logprob == -0.5
    assert inputs.question == "Capital?"


def test_what_was_not_handed_in_is_named() -> None:
    with pytest.raises(InputError, match="expected hidden_states for method 'm'"):
        of(Materials(TEXTS), Relation.of("rouge_l"), "hidden_states")
    with pytest.raises(InputError, match="expected nonsense for method 'm'"):
        of(Materials(TEXTS), Relation.of("rouge_l"), "nonsense")


def test_a_relation_must_be_able_to_give_what_a_method_needs() -> None:
    rouge, same, nli = (Relation.of(r) for r in ("rouge_l", Same(), Entailing()))

    check_relation(METHODS["snne"], rouge)
    check_relation(needing("cluster_ids"), same)
    check_relation(needing("cluster_ids", "entailment"), nli)
    with pytest.raises(ConfigurationError, match="mean the same for method 'm'"):
        check_relation(needing("cluster_ids"), rouge)
    with pytest.raises(ConfigurationError, match="of entailment for method 'm'"):
        check_relation(needing("main_entailment"), same)
    with pytest.raises(ConfigurationError, match="'rouge_l' does not say which"):
        of(Materials(TEXTS), rouge, "cluster_ids")


def test_what_comes_back_is_checked() -> None:
    class Wrong(Entailing):
        def probabilities(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> FloatArray:
            del question
            return np.full((len(texts), len(texts), 2), 0.5)

    class Odd(Same):
        def equivalent(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> BoolArray:
            del texts, question
            return np.ones((2, 3), dtype=np.bool_)

    with pytest.raises(InputError, match="probabilities without NaN, got"):
        of(Materials(TEXTS), Relation.of(Wrong()), "entailment")
    with pytest.raises(InputError, match="truth values, got shape"):
        of(Materials(TEXTS), Relation.of(Odd()), "cluster_ids")


def test_a_relation_that_can_tell_more_is_not_wrapped() -> None:
    def twice(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        return rouge_l(texts, question=question)

    assert Relation.of("rouge_l").through(lambda _: twice).similarity is twice
    same = Same()
    assert Relation.of(same).through(lambda _: twice).similarity is same
    assert Relation.of(same, name="mine").name == "mine"


@pytest.mark.parametrize("include_answer", [True, False])
def test_the_first_members_are_not_compared_again(include_answer: bool) -> None:
    model = Entailing()
    needs = ("similarity", "entailment", "cluster_ids", "mean_logprobs", "answers")
    more = ("main_similarity", "hidden_states", "p_true_logprob", "graph")
    known = {"hidden_states": np.eye(4), "p_true_logprob": -1.0}
    whole = Materials(
        TEXTS, token_logprobs=LOGPROBS, include_answer=include_answer, known=known
    )
    size = 2 + (not include_answer)
    alone = Materials(
        TEXTS[:size],
        token_logprobs=LOGPROBS[:size],
        include_answer=include_answer,
        known={"hidden_states": np.eye(4)[:size], "p_true_logprob": -1.0},
    )

    got = of(whole.first(2), Relation.of(model), *needs, *more)
    expected = of(alone, Relation.of(Entailing()), *needs, *more)

    for need in (*needs, *more):
        np.testing.assert_array_equal(getattr(got, need), getattr(expected, need))
    of(whole.first(1), Relation.of(model), *needs)
    of(whole, Relation.of(model), *needs)
    assert model.calls == 1
    rouge = of(whole.first(2), Relation.of("rouge_l"), "similarity")
    assert rouge.similarity.shape == (2, 2)


@pytest.mark.parametrize("n", [0, 5])
def test_there_are_no_more_members_than_there_are(n: int) -> None:
    with pytest.raises(InputError, match="expected 1 to 4 members"):
        Materials(TEXTS).first(n)
