"""From answers to a score: what is left out, what stands in, what is refused."""

import math
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS, Method, score, snne, wsnne
from snne_guard.similarity import content_f1, rouge_l
from snne_guard.types import FloatArray
from tests.scorers.support import CLUSTERS, TEXTS, TOKENS, Recorded, same

PARIS = ["Paris", "Paris", "Lyon"]
KNOWN = [[-0.1], [-0.2, -0.4], [-2.0]]


def inputs_of(**changes: Any) -> Any:
    options: dict[str, Any] = {
        "method": METHODS["snne"],
        "similarity": Recorded(),
    }
    return score(TEXTS, **{**options, **changes})


def test_the_default() -> None:
    found = score(PARIS, question="Capital of France?")
    f = content_f1(PARIS, question="Capital of France?")
    assert found.value == snne(f, anchor=0.7)
    assert (found.method, found.similarity, found.n) == ("snne", "content_f1", 3)
    assert (found.tau, found.reasons) == (1, ())
    assert found.matrix is not None
    assert found.matrix.tolist() == f.tolist()
    assert found.uncertainty == METHODS["snne"].uncertainty(found.value, 3)


def test_the_default_with_log_probabilities() -> None:
    found = score(PARIS, token_logprobs=KNOWN)
    f = content_f1(PARIS)
    assert found.method == "wsnne"
    assert found.value == pytest.approx(wsnne(f, [-0.1, -0.3, -2.0], anchor=0.7))


def test_samples_alone_have_no_anchor() -> None:
    found = score(PARIS, include_answer=False)
    assert found.value == snne(content_f1(PARIS))
    paper = score(PARIS, include_answer=False, similarity="rouge_l", tau=0.1)
    assert paper.value == snne(rouge_l(PARIS), tau=0.1)
    assert paper.tau == 0.1


@given(st.lists(st.sampled_from(["Paris", "Lyon", "It is Paris.", "7"]), min_size=2))
def test_u_is_between_all_alike_and_all_different(texts: list[str]) -> None:
    found = score(texts)
    assert found.uncertainty is not None
    assert 0 <= found.uncertainty <= 1
    assert (found.uncertainty == 0) == (len(set(texts)) == 1)


def test_some_log_probabilities_are_missing() -> None:
    found = score(PARIS, token_logprobs=[[-0.1], None, [-0.3]])
    assert (found.method, found.reasons) == ("snne", ("logprobs_missing",))
    assert score(PARIS, token_logprobs=[None, [], None]).reasons == ()
    with pytest.raises(InputError, match="expected mean_logprobs for method 'wsnne'"):
        score(PARIS, method="wsnne")


def test_reasoning_before_an_answer_is_not_compared() -> None:
    thought = ["<think>The Seine.</think>\nParis", *PARIS[1:]]
    found = score(thought, token_logprobs=KNOWN)
    assert found.reasons == ("logprobs_missing",)
    assert found.value == score(PARIS).value
    assert score(["<think>a</think>", "Paris", "Paris"]).uncertainty is None
    for text in ("<think>The Seine. Paris", "The Seine.</think>Paris"):
        assert score([text, "Paris", "Paris"]).value > score(["Paris"] * 3).value


INVISIBLE = ["", "  \n", "\u200b\u200d"]


@pytest.mark.parametrize("blank", INVISIBLE)
def test_invisible_samples_are_left_out(blank: str) -> None:
    known = [[-0.1], [-9.0], [-0.2, -0.4], [-2.0]]
    found = score(["Paris", blank, "Paris", "Lyon"], token_logprobs=known)
    assert found.reasons == ("unreadable_samples",)
    assert found.n == 3
    assert found.value == score(PARIS, token_logprobs=KNOWN).value


@pytest.mark.parametrize("blank", INVISIBLE)
def test_an_invisible_answer_is_not_scored(blank: str) -> None:
    found = score([blank, "Paris", "Paris"])
    assert (found.uncertainty, found.value, found.n) == (None, math.inf, 0)
    assert found.reasons == ("answer_unreadable",)
    assert score([blank, "Paris", "Paris"], include_answer=False).uncertainty == 0
    empty = score([blank, blank], include_answer=False)
    assert empty.reasons == ("unreadable_samples", "too_few_samples")
    assert empty.uncertainty is None


def test_one_answer_has_no_uncertainty() -> None:
    found = score(["Paris"])
    assert (found.uncertainty, found.n) == (None, 1)
    assert found.reasons == ("too_few_samples",)


def test_a_method_without_bounds_has_no_uncertainty() -> None:
    found = score(PARIS, token_logprobs=KNOWN, method="ne")
    assert found.value == pytest.approx(0.8)
    assert found.uncertainty is None
    assert found.reasons == ("scoring_failed",)


def test_a_method_that_compares_nothing_calls_no_similarity() -> None:
    compare = Recorded()
    found = inputs_of(
        method=METHODS["perplexity"], similarity=compare, token_logprobs=TOKENS
    )
    assert (found.similarity, found.matrix, compare.calls) == (None, None, 0)
    assert score(["Neil Armstrong"], method="answer_length").value == 2


def test_a_method_on_clusters_shows_what_it_compared() -> None:
    compare = Recorded()
    found = inputs_of(method=METHODS["dse"], similarity=compare)
    ids = np.array(CLUSTERS)
    assert found.matrix.tolist() == (ids[:, None] == ids).astype(float).tolist()
    assert compare.calls == 0  # the matrix would cost a second comparison


def test_a_similarity_of_your_own() -> None:
    found = score(PARIS, similarity=same, method="lex_sim")
    assert found.similarity == "same"
    assert found.value == pytest.approx(-1 / 3)

    def wrong(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        del question
        return np.full((len(texts), len(texts)), 7.0)

    with pytest.raises(InputError, match="got 7"):
        score(PARIS, similarity=wrong)


def of(value: float, u: float | None = 0.5) -> Method:
    def mapping(value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        del value, n, tau
        return u

    return Method(
        name="mine",
        source="mine",
        function=lambda f: value + 0 * len(f),
        limits=lambda n, /, *, tau=1.0: (0.0, n * tau),
        mapping=mapping,
    )


def test_a_method_of_your_own() -> None:
    found = score(PARIS, method=of(3.0))
    assert (found.value, found.uncertainty, found.method) == (3.0, 0.5, "mine")
    for method in (of(math.nan), of(1.0, 1.5), of(1.0, math.nan)):
        with pytest.raises(InputError, match="from method 'mine', got"):
            score(PARIS, method=method)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ("Paris", "a sequence of texts, got one str"),
        ([], "at least one answer"),
        (["Paris", None], "to be a str, got NoneType"),
    ],
)
def test_no_answers(answers: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        score(answers)


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ([[-0.1]], "for each of 3 answers, got 1"),
        ([[-0.1], [math.nan], [-0.1]], "answer 1 without NaN, got nan"),
    ],
)
def test_no_log_probabilities(known: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        score(PARIS, token_logprobs=known)


def test_a_question_that_is_no_text() -> None:
    with pytest.raises(InputError, match="question to be a text or None, got int"):
        score(PARIS, question=5)  # type: ignore[arg-type]


def test_options_that_make_no_sense() -> None:
    for options in (
        {"method": "sne"},
        {"similarity": "cosine"},
        {"method": "dse", "similarity": "rouge_l"},
        {"tau": 0},
    ):
        with pytest.raises(ConfigurationError):
            score(PARIS, **options)


def test_no_message_holds_an_answer() -> None:
    def as_objects(texts: Sequence[str], /, *, question: str | None = None) -> Any:
        del question
        return np.array(texts, dtype=object)

    for options in (
        {"method": "wsnne"},
        {"token_logprobs": [[0.5], [0.5]]},
        {"similarity": as_objects},
    ):
        with pytest.raises(InputError) as caught:
            score(["Xyzzy", "Xyzzy it is"], **options)
        shown = "".join(traceback.format_exception(caught.value))
        assert "float: 'Xyzzy'" not in shown
        assert "Xyzzy" not in str(caught.value)
