"""Answers that were taken from the samples, and those that only agree with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snne_guard.evaluation import Recording, answer_among_samples, read_recordings
from tests.support.grading import answered
from tests.support.shared_folder import SHARED

DATA = SHARED / "data"
FILES = (
    "generations_sac3_nq",
    "generations_sac3_hotpot",
    "generations_uqnlg_triviaqa",
    "generations_wikibio119_gpt35",
    "generations_gsm8k_4systems",
    "generations_pot_aqua_codex",
    "recorded_qwen15",
)


def drawn(questions: int, n: int, *, peak: float, seed: int = 0) -> list[Recording]:
    """Return questions whose likeliest text comes with probability ``peak``.

    The answer is the first of the n + 1 draws.
    """
    random = np.random.default_rng(seed)
    rows: list[Recording] = []
    for _ in range(questions):
        likely = random.random(n + 1) < peak
        rest = random.integers(1, 60, n + 1)
        texts = [
            str(0 if top else other) for top, other in zip(likely, rest, strict=True)
        ]
        rows.append(answered(texts[0], samples=tuple(texts[1:])))
    return rows


def greedy(rows: list[Recording]) -> list[Recording]:
    return [replace(row, main_answer="0") for row in rows]


def taken(rows: list[Recording], seed: int = 1) -> list[Recording]:
    random = np.random.default_rng(seed)
    return [
        replace(row, main_answer=f" {row.samples[random.integers(len(row.samples))]}\n")
        for row in rows
    ]


@pytest.mark.parametrize("peak", [0.0, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_draws_and_greedy_answers_are_not_suspected(n: int, peak: float) -> None:
    rows = drawn(2000, n, peak=peak)

    for honest in (rows, greedy(rows)):
        found = answer_among_samples(honest)
        assert not found.suspected
        assert found.warning is None


@pytest.mark.parametrize("peak", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("n", [3, 5, 10])
def test_an_answer_taken_from_the_samples_is(n: int, peak: float) -> None:
    found = answer_among_samples(taken(drawn(500, n, peak=peak)))

    assert found.suspected
    assert found.share == 1
    assert found.once == found.at_most_once
    assert found.left_one_out < 0.9
    assert found.warning is not None
    assert found.warning.startswith("main_answer seems to be one of the samples: it")


@pytest.mark.parametrize("place", [0, 3])
def test_a_greedy_answer_that_is_kept_among_the_samples(place: int) -> None:
    rows = [
        replace(row, samples=(*row.samples[:place], "0", *row.samples[place:]))
        for row in greedy(drawn(300, 9, peak=0.8))
    ]
    found = answer_among_samples(rows)

    assert found.place == place
    assert found.warning is not None
    assert f"seems to be sample {place}: it equals a sample in 100% of" in found.warning


def test_a_few_rows_that_were_cut_do_not_hide_it() -> None:
    rows = taken(drawn(200, 5, peak=0.3))
    cut = [replace(row, main_answer=row.main_answer[:1]) for row in rows[:2]]

    assert answer_among_samples([*cut, *rows[2:]]).suspected


@pytest.mark.parametrize(("n", "peak"), [(2, 0.0), (2, 0.3), (3, 0.3), (5, 0.2)])
def test_a_small_file_tells_too(n: int, peak: float) -> None:
    for seed in range(20):
        honest = drawn(40, n, peak=peak, seed=seed)
        assert not answer_among_samples(honest).suspected
        assert not answer_among_samples(greedy(honest)).suspected
        assert answer_among_samples(taken(honest, seed)).suspected


def kinds(
    questions: int, n: int, *, texts: int, peak: float | None, seed: int
) -> list[Recording]:
    """Return questions that have so few answers: yes and no, or options by name.

    The likeliest has the probability ``peak``, or any from 0.5 to 1 without.
    """
    random = np.random.default_rng(seed)
    rows: list[Recording] = []
    for number in range(questions):
        likely = random.uniform(0.5, 1) if peak is None else peak
        rest = [(1 - likely) / (texts - 1)] * (texts - 1)
        names = ["yes", "no", "unknown"][:texts]
        if number % 2:
            names = [f"{name} {number}" for name in names]  # of this question alone
        drawn_ = random.choice(names, n + 1, p=[likely, *rest]).tolist()
        rows.append(
            replace(answered(drawn_[0], samples=tuple(drawn_[1:])), answers=(names[0],))
        )
    return rows


@pytest.mark.parametrize("texts", [2, 3])
@pytest.mark.parametrize("peak", [0.5, 0.7, 0.9, 0.97, None])
@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_answers_of_few_kinds_come_again_whoever_gives_them(
    n: int, peak: float | None, texts: int
) -> None:
    for questions in (30, 300):
        for seed in range(2):
            rows = kinds(questions, n, texts=texts, peak=peak, seed=seed)
            likeliest = [
                replace(row, main_answer=(row.answers or ("",))[0]) for row in rows
            ]
            assert not answer_among_samples(rows).suspected
            assert not answer_among_samples(likeliest).suspected


@pytest.mark.parametrize(("n", "peak"), [(2, 0.5), (2, 0.7), (3, 0.5), (3, 0.6)])
def test_answers_of_few_kinds_that_were_taken_never_miss(n: int, peak: float) -> None:
    for seed in range(2):
        rows = kinds(500, n, texts=2, peak=peak, seed=seed)
        found = answer_among_samples(taken(rows, seed))
        assert found.suspected
        assert found.warning is not None
        assert "seems to be one of the samples" in found.warning


def test_too_little_to_tell() -> None:
    assert not answer_among_samples([]).suspected
    one = answered("a", samples=("a", "b"))
    assert not answer_among_samples([one] * 5).suspected
    same = [answered("a", samples=("a", "a", "a"))] * 500
    found = answer_among_samples(same)
    assert (found.rows, found.share, found.suspected) == (0, 0.0, False)
    short = [answered("a", samples=("a",)), answered("a")] * 500
    assert not answer_among_samples(short).suspected


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded generations are not here")
@pytest.mark.parametrize("name", FILES)
def test_real_recordings_and_what_they_would_be_otherwise(name: str) -> None:
    read = read_recordings(DATA / f"{name}.jsonl", strict=True)
    rows = [row for _, row in read if isinstance(row, Recording)]

    found = answer_among_samples(rows)
    assert not found.suspected
    assert found.once < 0.3 * found.at_most_once
    assert answer_among_samples(taken(rows)).suspected
    for n in (2, 3):
        few = [replace(row, samples=row.samples[:n]) for row in rows]
        assert not answer_among_samples(few).suspected
        assert answer_among_samples(taken(few)).suspected
    first = [replace(row, main_answer=row.samples[0]) for row in rows]
    assert answer_among_samples(first).place == 0
