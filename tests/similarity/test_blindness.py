"""What a similarity cannot see is asked of it, and becomes a reason of the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.assess import Judge
from snne_guard.decision import Policy
from snne_guard.errors import InputError
from snne_guard.scorers import READINGS, score
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import WithQuestion, rouge_l, rouge_l_paper
from snne_guard.similarity.blindness import blind_spots
from snne_guard.similarity.growth import Growth
from snne_guard.types import FloatArray, ResponseSet, Sample
from tests.support.entailing import Contains


class Short:
    """Sees three letters of each text, and says so."""

    def __init__(self, codes: Any = ("answers_cut",)) -> None:
        self.codes = codes
        self.asked: list[tuple[list[str], str | None]] = []

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        return np.array([[float(a[:3] == b[:3]) for a in texts] for b in texts])

    def blind_spots(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> Any:
        self.asked.append((list(texts), question))
        return self.codes if any(len(text) > 3 for text in texts) else ()


def test_what_a_similarity_cannot_see_is_a_reason_of_the_score() -> None:
    short = Short()

    assert score(["Paris", "Par"], question="?", similarity=short).reasons == (
        "answers_cut",
    )
    assert short.asked == [(["Paris", "Par"], "?")]
    assert score(["Rom", "Par"], similarity=short).reasons == ()
    assert score(["Paris", "Par"], similarity=rouge_l).reasons == ()


def test_only_texts_that_are_looked_at_are_asked_about() -> None:
    short = Short()
    samples = (Sample(text="Par"), Sample(text="Par"))

    def reasons(method: str) -> tuple[str, ...]:
        judge = Judge(policy=Policy(min_samples=2), method=method, similarity=short)
        responses = ResponseSet(
            answer=Sample(text="Paris", token_logprobs=(-1.0,)),
            samples=samples,
            include_answer=False,
        )
        growth = Growth()  # another similarity stands for it then
        found, _ = judge.judge(
            responses, assessment_id="1", settle_logprobs=bool, growth=growth
        )
        return found.reasons

    assert reasons("snne") == ("no_threshold",)
    assert reasons("cocoa_msp") == ("no_threshold", "no_bounds", "answers_cut")


def test_a_method_on_sentences_asks_about_sentences_alone() -> None:
    asked: list[list[str]] = []

    class Sentences(Contains):
        def __call__(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> FloatArray:
            raise AssertionError(texts, question)

        def blind_spots(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> tuple[str, ...]:
            del question
            asked.append([*texts])
            return ()

    found = score(
        ["Paris. It is.", "Lyon."],
        method=READINGS["luq_sentences"],
        similarity=Sentences(),
    )

    assert (found.similarity, found.matrix) == ("nli:contains", None)
    assert asked == [["Paris.", "It is.", "Lyon."]]


@pytest.mark.parametrize("codes", ["answers_cut", (1,)])
def test_what_is_no_code_is_refused(codes: Any) -> None:
    with pytest.raises(InputError, match="expected reason codes from blind_spots"):
        score(["Paris", "Par"], similarity=Short(codes))


def test_where_the_blind_spots_are_unknown_nothing_is_scored() -> None:
    judge = Judge(policy=Policy(), similarity=Short((1,)))
    responses = ResponseSet(answer=Sample(text="Paris"), samples=(Sample(text="Par"),))

    found, _ = judge.judge(responses, assessment_id="1", settle_logprobs=bool)

    assert found.score is None
    assert "scoring_failed" in found.reasons


@pytest.mark.parametrize("spots", [5, None])
def test_what_cannot_be_called_tells_nothing(spots: Any) -> None:
    short: Any = Short()
    short.blind_spots = spots
    assert blind_spots(short, ["Paris"]) == ()


def test_the_question_before_an_answer_counts_too() -> None:
    short = Short()
    asked = WithQuestion(short, "mine")

    assert asked.blind_spots(["a"], question="Who?") == ("answers_cut",)
    assert asked.blind_spots(["a"]) == ()
    assert short.asked == [(["Who? a"], "Who?"), (["a"], None)]
    paper = WithQuestion(WithQuestion(rouge_l_paper, "a"), "b")
    assert paper.blind_spots(["東京"], question="Who?") == ("tokenless_answers",)
    assert WithQuestion(rouge_l, "c").blind_spots(["a"], question="Who?") == ()


def test_a_relation_remembers_whom_to_ask() -> None:
    relation = Relation.of(rouge_l_paper).through(Growth().over).through(Growth().over)
    assert relation.blind_spots(["東京"], None) == ("tokenless_answers",)
