from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from snne_guard.cli._words import (
    DECISIONS,
    cost_in_words,
    decision_in_words,
    reasons_in_words,
)
from snne_guard.cli.render import AssessmentView, fold, plain
from snne_guard.types import Assessment, Cost, Sample

TEXTS = ("Paris", "Lyon", "Paris", "Nice", "Lyon", "Lyon")
HELD_BACK = (
    "Decision    HELD BACK  u = 0.75 is above the threshold 0.50: the application "
    "gets a refusal instead."
)
NOT_BREAKING = str.maketrans("", "", "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


def sample(text: str, **options: Any) -> Sample:
    return Sample(text=text, **options)


def assessed(**changes: Any) -> Assessment:
    matrix = np.array([[float(a == b) for a in TEXTS] for b in TEXTS])
    values: dict[str, Any] = {
        "id": "1",
        "answer": sample(TEXTS[0]),
        "samples": tuple(map(sample, TEXTS[1:])),
        "scored": TEXTS,
        "matrix": matrix,
        "method": "snne",
        "score": -2.0,
        "uncertainty": 0.75,
        "threshold": 0.5,
        "decision": "refuse",
        "n_requested": 6,
        "n_used": 6,
    }
    return Assessment(**(values | changes))


class _Ascii(io.StringIO):
    encoding = "ascii"  # what rich looks at


def shown(
    assessment: Assessment, *, delivered: str | None = None, unicode: bool = True
) -> list[str]:
    console = Console(
        file=io.StringIO() if unicode else _Ascii(),
        width=100,
        color_system=None,
        highlight=False,
    )
    with console.capture() as capture:
        console.print(AssessmentView(assessment=assessment, delivered=delivered))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_page_of_a_withheld_answer() -> None:
    cost = Cost(calls=2, attempts=2, prompt_tokens=9, completion_tokens=7, seconds=1.25)
    page = shown(assessed(cost=cost), delivered="No.", unicode=False)
    assert page == [
        "Answer      Paris  (withheld)",
        "Replies     A x2 Paris",
        "            B x3 Lyon",
        "            C x1 Nice",
        "Similarity    A A B B B C",
        "            A ####........",
        "            A ####........",
        "            B ....######..",
        "            B ....######..",
        "            B ....######..",
        "            C ..........##",
        "            nothing in common ..--++oo## the same",
        f"Spread      alike {'#' * 30}---------- different   u = 0.75",
        "                                      ^ threshold 0.50, uncalibrated",
        HELD_BACK,
        "            Delivered instead: No.",
        "Cost        2 requests, 9 tokens read, 7 written, 1.2 s",
    ]


def test_blocks_where_the_terminal_has_them() -> None:
    page = shown(assessed())
    assert page[5] == "            A ████········"
    assert page[1] == "Replies     A \u00d72 Paris"


@pytest.mark.parametrize(
    ("similarity", "shade"),
    [
        (0.0, "."),
        (0.04, "."),
        (0.05, "-"),
        (0.34, "-"),
        (0.5, "+"),
        (0.65, "o"),
        (0.94, "o"),
        (0.95, "#"),
        (1.0, "#"),
    ],
)
def test_the_shade_grows_with_the_similarity(similarity: float, shade: str) -> None:
    matrix = np.array([[1.0, similarity], [similarity, 1.0]])
    page = shown(assessed(scored=("a", "b"), matrix=matrix), unicode=False)
    row = next(line for line in page if line.startswith("            A ##"))
    assert row == "            A ##" + shade * 2


@pytest.mark.parametrize(("u", "filled"), [(0.0, 0), (0.26, 10), (1.0, 40)])
def test_the_bar_shows_u(u: float, filled: int) -> None:
    page = shown(assessed(uncertainty=u), unicode=False)
    bar = next(line for line in page if line.startswith("Spread"))
    assert bar.count("#") == filled
    assert bar.count("-") == 40 - filled


@pytest.mark.parametrize(
    ("threshold", "certified", "told", "column"),
    [
        (0.5, False, "^ threshold 0.50, uncalibrated", 38),
        (1.0, True, "^ threshold 1.00, certified", 58),
        (-1.0, True, "^ threshold -1.00, certified", 18),
    ],
)
def test_the_threshold_is_marked(
    threshold: float, certified: bool, told: str, column: int
) -> None:
    page = shown(assessed(threshold=threshold, certified=certified), unicode=False)
    assert " " * column + told in page


def test_no_threshold_no_mark() -> None:
    page = shown(assessed(threshold=None, decision=None), unicode=False)
    assert not any("^" in line for line in page)
    assert any("MEASURED  u = 0.75; nothing is decided" in line for line in page)


def test_what_was_not_compared_is_named() -> None:
    page = shown(
        assessed(
            samples=(
                *map(sample, TEXTS[1:]),
                sample("cut off he", finish_reason="length"),
                sample("", reasoned=True),
                sample(""),
                sample(""),
                sample("", tool_calls='{"a": 1}'),
                sample("Lyon"),
            )
        ),
        unicode=False,
    )
    assert page[4:9] == [
        "            - x1 cut off he  (not compared: truncated)",
        "            - x1   (not compared: reasoning only)",
        "            - x2   (not compared: empty)",
        '            - x1 {"a": 1}  (not compared: tool calls)',
        "            - x1 Lyon  (not compared: not scored)",
    ]


def test_nothing_scored_and_no_answer() -> None:
    page = shown(
        assessed(
            answer=None,
            scored=(),
            matrix=None,
            uncertainty=None,
            decision=None,
            reasons=("answer_failed", "something_new"),
        ),
        unicode=False,
    )
    assert page[0] == "Answer      none came"
    assert not any(line.startswith(("Similarity", "Spread")) for line in page)
    text = " ".join(page)
    assert "MEASURED  There is no u to decide by" in text
    assert "Note: the answer itself failed; something_new." in text


def test_long_replies_and_large_sets_stay_readable() -> None:
    texts = tuple(f"{number} " + "word " * 100 for number in range(27))
    page = shown(
        assessed(
            answer=sample(texts[0]),
            samples=tuple(map(sample, texts[1:])),
            scored=texts,
            matrix=np.eye(27),
        ),
        unicode=False,
    )
    assert "Similarity  of 27 replies, too many to draw" in page
    assert sum("..." in line for line in page) == 27
    assert any(line.lstrip().startswith("* x1 26 word") for line in page)


def test_a_reply_cannot_steer_the_terminal() -> None:
    evil = "\x1b]0;title\x07[bold red]x[/] \u202egnp.exe\x9b31m\r\nnext"
    page = "\n".join(
        shown(assessed(answer=sample(evil), scored=(evil, *TEXTS[1:])), delivered=evil)
    )
    assert not {"\x1b", "\x07", "\u202e", "\x9b", "\r"} & set(page)
    assert page.count("[bold red]x[/]") == 3


@given(st.text())
def test_plain_is_one_printable_line(text: str) -> None:
    once = plain(text)
    assert once == plain(once) == once.translate(NOT_BREAKING)
    assert not {"\x1b", "\x9b"} & set(once)


@given(st.lists(st.sampled_from("abcde"), min_size=1))
def test_fold_holds_every_position_once(texts: list[str]) -> None:
    groups = fold(texts)
    assert sorted(p for group in groups for p in group.members) == list(
        range(len(texts))
    )
    assert groups[0].members[0] == 0
    sizes = [len(group.members) for group in groups[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(texts[p] == group.text for group in groups for p in group.members)


@pytest.mark.parametrize("decision", DECISIONS)
def test_every_decision_has_words(decision: Any) -> None:
    words = decision_in_words(assessed(decision=decision))
    assert words.startswith("u = 0.75 is above the threshold 0.50: ")
    assert words.endswith(".")


def test_an_accepted_answer_in_words() -> None:
    assert decision_in_words(assessed(decision="accept", uncertainty=0.5)) == (
        "u = 0.50 is within the threshold 0.50: the answer is delivered."
    )


def test_reasons_in_words() -> None:
    assert reasons_in_words(assessed()) == ""
    told = reasons_in_words(assessed(reasons=("samples_late", "mixed_models")))
    assert told == (
        "some samples did not come in time; not all replies come from the same model"
    )


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (
            Cost(calls=1, attempts=1, prompt_tokens=5, completion_tokens=2),
            "1 request, 5 tokens read, 2 written, 0.0 s",
        ),
        (
            Cost(
                calls=2,
                attempts=4,
                prompt_tokens=90,
                cached_tokens=80,
                completion_tokens=7,
                seconds=3.14,
                lower_bound=True,
                money=0.00125,
                samples_saved=1,
            ),
            (
                "2 requests of 4 sent, at least 90 tokens read (80 from a cache), "
                "at least 7 written, 3.1 s, price at least 0.001250, 1 sample saved"
            ),
        ),
    ],
)
def test_cost_in_words(cost: Cost, told: str) -> None:
    assert cost_in_words(cost) == told
