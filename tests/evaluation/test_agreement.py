"""Agreement of two graders, and graders that see what a similarity sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import (
    GRADERS,
    AgreementOfGraders,
    Grade,
    Recording,
    agreement,
    both_lexical,
    grade_all,
    is_lexical,
    labels_by_tokens,
    read_recordings,
    resolve_grader,
)
from snne_guard.similarity import rouge_l
from snne_guard.similarity.exact import exact
from snne_guard.types import FloatArray
from tests.support.grading import answered
from tests.support.shared_folder import SHARED


def grades(name: str, verdicts: str) -> list[Grade | None]:
    """Return one grade a letter: 1, 0, ? for a quality alone, - for none."""
    right: dict[str, Literal[0, 1] | None] = {"1": 1, "0": 0, "?": None}
    return [
        None
        if letter == "-"
        else Grade(quality=0.5, correct=right[letter], grader=name)
        for letter in verdicts
    ]


def test_the_four_cells() -> None:
    found = agreement(grades("a", "1110001?-1"), grades("b", "110100-11?"))

    assert found == AgreementOfGraders(
        first="a",
        second="b",
        n=6,
        share=4 / 6,
        kappa=1 / 3,
        both_right=2,
        first_only=1,
        second_only=1,
        both_wrong=2,
    )


@pytest.mark.parametrize(
    ("one", "other", "share", "kappa"),
    [
        ("1100", "1100", 1.0, 1.0),
        ("1100", "0011", 0.0, -1.0),
        ("1100", "1010", 0.5, 0.0),
        ("1111", "1111", 1.0, None),
        ("0000", "0000", 1.0, None),
        ("1111", "0000", 0.0, 0.0),
        ("1111", "1110", 0.75, 0.0),
    ],
)
def test_kappa_in_both_directions(
    one: str, other: str, share: float, kappa: float | None
) -> None:
    for first, second in ((one, other), (other, one)):
        found = agreement(grades("a", first), grades("b", second))
        assert found is not None
        assert (found.share, found.kappa) == (share, kappa)


def test_kappa_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    for _ in range(20):
        one = random.random(50) < 0.7
        other = np.where(random.random(50) < 0.8, one, ~one)
        found = agreement(
            grades("a", "".join(str(int(v)) for v in one)),
            grades("b", "".join(str(int(v)) for v in other)),
        )
        assert found is not None
        expected = metrics.cohen_kappa_score(one, other)
        assert found.kappa == pytest.approx(expected, abs=1e-12)


def test_nothing_that_both_graded() -> None:
    assert agreement([], []) is None
    assert agreement(grades("a", "1-?"), grades("b", "-1?")) is None


def test_grades_of_other_recordings() -> None:
    with pytest.raises(InputError, match="as many grades of both, got 1 and 2"):
        agreement(grades("a", "1"), grades("b", "10"))


def test_every_grader_that_took_part_is_named() -> None:
    rows = [answered("Paris", "Paris", label=1), answered("Lyon", "Paris")]
    found = agreement(
        grade_all(rows, resolve_grader()), grade_all(rows, GRADERS["squad_em"]())
    )

    assert found is not None
    assert (found.first, found.second) == ("label and squad_f1", "squad_em")


def test_which_similarities_look_at_words() -> None:
    def meaning(texts: list[str], /, *, question: str | None = None) -> FloatArray:
        del question
        return np.eye(len(texts))

    class Words:
        lexical = True

        def __call__(
            self, texts: list[str], /, *, question: str | None = None
        ) -> FloatArray:
            return meaning(texts, question=question)

    for similarity in ("rouge_l", "rouge_l_paper", "structured", "exact", exact):
        assert is_lexical(similarity)
    for other in ("numeric", meaning):
        assert not is_lexical(other)  # type: ignore[arg-type]
    assert is_lexical(Words())  # type: ignore[arg-type]
    assert is_lexical(rouge_l)
    assert is_lexical("content_f1")


def test_a_warning_needs_both() -> None:
    assert both_lexical(GRADERS["squad_f1"](), "rouge_l")
    assert both_lexical(resolve_grader("squad_em"), "exact")
    assert not both_lexical(GRADERS["squad_f1"](), "nli")
    assert not both_lexical(GRADERS["numeric"](), "rouge_l")
    assert not both_lexical(GRADERS["label"](), "rouge_l")


def test_labels_that_token_f1_could_have_made() -> None:
    rows = [answered("Paris", "Paris", label=1), answered("Lyon", "Paris", label=0)]
    found = labels_by_tokens(rows * 15)

    assert found is not None
    assert (found.n, found.share, found.kappa) == (30, 1.0, 1.0)
    assert labels_by_tokens(rows * 14) is None
    assert labels_by_tokens([*rows * 15, replace(rows[0], label=0)]) is not None
    assert labels_by_tokens([*rows * 15, *[replace(rows[0], label=0)] * 2]) is None
    assert labels_by_tokens(rows[:1] * 50) is None  # no kappa without wrong answers
    assert labels_by_tokens([answered("x", label=1)] * 50) is None


@pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the recorded generations are not here"
)
@pytest.mark.parametrize(
    ("name", "by_tokens"),
    [
        ("generations_sac3_nq", False),
        ("generations_sac3_hotpot", False),
        ("generations_gsm8k_4systems", False),
        ("generations_uqnlg_triviaqa", True),
        ("recorded_qwen15", True),
    ],
)
def test_labels_of_real_recordings(name: str, *, by_tokens: bool) -> None:
    read = read_recordings(SHARED / "data" / f"{name}.jsonl", strict=True)
    rows = [row for _, row in read if isinstance(row, Recording)]

    assert (labels_by_tokens(rows) is not None) == by_tokens
    with_f1 = agreement(
        grade_all(rows, GRADERS["label"]()), grade_all(rows, GRADERS["squad_f1"]())
    )
    assert with_f1 is not None
    assert with_f1.kappa is not None
    assert by_tokens or with_f1.kappa < 0.5


@pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the recorded generations are not here"
)
@pytest.mark.parametrize(
    ("name", "by_f1", "by_containment"),
    [("generations_sac3_nq", 0.07, 0.66), ("generations_sac3_hotpot", 0.47, 0.79)],
)
def test_whole_sentences_are_graded_as_people_do_by_containment(
    name: str, by_f1: float, by_containment: float
) -> None:
    read = read_recordings(SHARED / "data" / f"{name}.jsonl", strict=True)
    rows = [row for _, row in read if isinstance(row, Recording)]
    labels = grade_all(rows, GRADERS["label"]())

    for grader, kappa in (("squad_f1", by_f1), ("contains", by_containment)):
        found = agreement(labels, grade_all(rows, GRADERS[grader]()))
        assert found is not None
        assert found.kappa == pytest.approx(kappa, abs=0.005)
