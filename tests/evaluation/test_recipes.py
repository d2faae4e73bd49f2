"""Recipes: what they find and cost, and which one is best."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from snne_guard.cost import Prices
from snne_guard.evaluation import Recording, auroc, evaluate, shard_of
from snne_guard.evaluation.recipes import Recipe, RecipeComparison
from snne_guard.scorers import score
from snne_guard.self_check import SelfCheck

VIEWS = ["plain", "reasoning"]
AGREE, DIFFER = ("Paris", "Paris"), ("Rome", "Oslo")
OTHERS = ("Bonn", "Nice")

QUESTIONS = (
    (1, AGREE, AGREE),
    (0, AGREE, OTHERS),
    (1, DIFFER, AGREE),
    (0, DIFFER, OTHERS),
)
"""Label, plain samples, samples that reason: plain ones rank these by chance (.5),
those that reason rank them rightly (1), one of each has .875."""

REQUESTS = [
    {"role": "answer", "replies": 1, "calls": 1, "attempts": 3, "prompt_tokens": 10,
     "completion_tokens": 2},
    {"role": "sample", "view": "plain", "replies": 2, "calls": 1, "prompt_tokens": 10,
     "cached_tokens": 8, "completion_tokens": 20, "reasoning_tokens": 4},
    {"role": "sample", "view": "reasoning", "attempts": 3},
    *[{"role": "sample", "view": "reasoning", "replies": 1, "calls": 1,
       "prompt_tokens": 15, "completion_tokens": 30, "reasoning_tokens": 25}] * 2,
    {"role": "self_check", "replies": 1, "calls": 1, "prompt_tokens": 1,
     "completion_tokens": 1},
]  # fmt: skip
PRICES = Prices(prompt=1e6, completion=2e6, cached=5e5)


def ids(part: int) -> Iterator[str]:
    """Yield ids of a third of all questions."""
    return (str(n) for n in itertools.count() if shard_of(str(n), 3) == part)


def recorded(
    name: str, label: int | None, *views: tuple[str, ...], **fields: Any
) -> Recording:
    """Return a recording whose samples take their views in turn."""
    samples = [text for turn in zip(*views, strict=True) for text in turn]
    settings = {"views": VIEWS[: len(views)], **fields.pop("settings", {})}
    known = {"id": name, "question": "Where?", "main_answer": "Paris"}
    return Recording.from_dict(
        known | {"samples": samples, "label": label, "settings": settings} | fields
    )


def third(part: int, *, swapped: bool = False, **fields: Any) -> list[Recording]:
    """Return the four questions, or those where plain samples rank rightly."""
    names = itertools.islice(ids(part), len(QUESTIONS))
    checks = (0.9, 0.9, 0.9, 0.1)
    return [
        recorded(
            name,
            label,
            *((other, plain) if swapped else (plain, other)),
            **({"self_check": check, "drawn": {"requests": REQUESTS}} | fields),
        )
        for name, check, (label, plain, other) in zip(
            names, checks, QUESTIONS, strict=True
        )
    ]


def compared(rows: list[Recording], **options: Any) -> RecipeComparison:
    usual: dict[str, Any] = {"calls": 3, "resamples": 20, "prices": PRICES}
    found = evaluate(rows, methods="answer_length", **usual | options).recipes
    assert found is not None
    return found


def recipe(found: RecipeComparison, name: str, calls: int = 3) -> Recipe:
    (known,) = [r for r in found.recipes if (r.name, r.calls) == (name, calls)]
    return known


# -- What they find and cost -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        # AUROC, rounds, requests, read, cached, written, reasoning, money
        ("plain", (0.5, 1, 2, 20, 8, 22, 4, 60)),
        ("reasoning", (1.0, 1, 3, 40, 0, 62, 50, 164)),
        ("views", (0.875, 1, 3, 35, 8, 42, 27, 115)),
        ("plain + self-check", (0.625, 2, 3, 21, 8, 13, 2, 43)),
        ("reasoning + self-check", (1.0, 2, 3, 26, 0, 33, 25, 92)),
        ("views + self-check", (0.625, 2, 3, 21, 8, 13, 2, 43)),
    ],
)
def test_what_a_recipe_finds_and_costs(name: str, figures: tuple[float, ...]) -> None:
    found = recipe(compared(third(1)), name)
    assert found.cost is not None
    read = [found.cost.calls, found.cost.prompt_tokens, found.cost.cached_tokens]
    written = [found.cost.completion_tokens, found.cost.reasoning_tokens]
    costs = [value / 4 for value in (*read, *written, found.cost.money or 0)]
    assert [found.auroc.value, found.rounds, *costs] == [*figures]
    assert found.auroc.low <= found.auroc.value <= found.auroc.high


def test_answers_that_call_tools_are_compared_by_their_calls() -> None:
    calls = [
        f'[{{"args":{{"city":"{city}"}},"name":"f"}}]' for city in ("Bonn", "Rome")
    ]
    kinds = {"kinds": ["tool_calls"] * 5}
    rows = [
        recorded(
            str(number),
            label,
            (calls[0],) * 2 if label else (calls[1], "[]"),
            (calls[0],) * 2,
            main_answer=calls[0],
            drawn=kinds,
        )
        for number, label in enumerate([1, 0, 1, 0])
    ]
    assert recipe(compared(rows), "plain").auroc.value == 1.0


def test_recipes_are_those_for_which_there_are_samples() -> None:
    found = compared(third(1), calls=6)
    assert [(known.calls, known.name) for known in found.recipes] == [
        *[
            (3, name + end)
            for name in ("plain", "reasoning", "views")
            for end in ("", " + self-check")
        ],
        *[(4, f"{name} + self-check") for name in ("plain", "reasoning")],
        *[
            (4, "views"),
            (4, "views + self-check"),
            (5, "views"),
            (5, "views + self-check"),
        ],
        (6, "views + self-check"),
    ]
    assert (found.at_equal_calls, found.at_equal_money) == (None, None)


def test_the_score_is_the_public_one() -> None:
    rows = third(1) + third(2, swapped=True)
    labels = [row.label or 0 for row in rows]
    for name, places, checked in (
        ("reasoning", (1, 3), False),
        ("views", (0, 1, 2), False),
        ("views + self-check", (0, 1), True),
    ):
        us = [
            score(
                [row.main_answer, *(row.samples[at] for at in places)],
                question=row.question,
                method="snne",
                self_check=row.self_check if checked else None,
            ).uncertainty
            for row in rows
        ]
        known = recipe(compared(rows), name, 1 + len(places) + checked)
        assert known.auroc.value == auroc([u or 0.0 for u in us], labels)


def test_views_of_the_users_own_are_recipes_by_their_names() -> None:
    theirs = {"views": ["mine", "yours"]}
    found = compared(third(1, settings=theirs) + third(2, settings=theirs))
    assert {known.name for known in found.recipes} >= {"mine", "yours", "views"}
    assert found.at_equal_calls is None  # nothing to compare them with


@pytest.mark.parametrize(
    ("readable", "u_is_one"), [(0, True), (1, True), (2, False), (4, False)]
)
def test_a_set_that_a_guard_would_not_score_is_uncertain(
    readable: int, *, u_is_one: bool
) -> None:
    drawn = ("Paris",) * readable + ("",) * (4 - readable)
    rows = [
        recorded("0", 0, ("Paris",) * 4, drawn),
        recorded("1", 1, ("Paris",) * 4, ("Paris",) * 4),
    ]
    found = recipe(compared(rows), "reasoning", 5)
    assert found.auroc.value == (1.0 if u_is_one else 0.5)


def test_a_check_that_says_nothing_counts_as_half() -> None:
    asked = {"self_check": SelfCheck().prompt}
    rows = [
        recorded(str(n), n % 2, AGREE, self_check=p, settings=asked)
        for n, p in enumerate([None, 0.6, 0.4, None])
    ]
    found = compared(rows)
    assert recipe(found, "plain + self-check").auroc.value == pytest.approx(3.5 / 4)
    assert sum(found.thirds) == 4


def test_requests_that_are_not_recorded_cost_nobody_knows_what() -> None:
    first, *others = third(1)
    part = Recording.from_dict(first.to_dict() | {"drawn": {"requests": REQUESTS[:2]}})
    found = recipe(compared([part, *others]), "reasoning")
    assert found.cost is None
    assert found.auroc.value == 1.0
    unpriced = recipe(compared(third(1), prices=None), "plain").cost
    assert unpriced is not None
    assert (unpriced.money, unpriced.calls, unpriced.lower_bound) == (None, 8, False)
    short = [*REQUESTS[:-1], {"role": "self_check", "attempts": 1, "lower_bound": True}]
    late = compared(third(1, drawn={"requests": short}))
    for name, bound in (("plain + self-check", True), ("plain", False)):
        cost = recipe(late, name).cost
        assert cost is not None
        assert cost.lower_bound is bound


# -- Which questions -------------------------------------------------------------------


def test_questions_that_were_drawn_in_another_way_are_left_out() -> None:
    rows = third(1) + third(2) + third(3)
    others: list[dict[str, Any]] = [
        {"samples": ["Paris", "Rome"]},
        {"self_check": None},
        {"settings": {"views": ["plain", "examples"]}},
        {"label": None},
        {"main_answer": " "},
    ]
    odd = [
        Recording.from_dict(rows[0].to_dict() | {"id": f"odd {n}"} | fields)
        for n, fields in enumerate(others)
    ]
    assert compared(rows + odd) == compared(rows)
    assert compared(rows).thirds == (4, 4, 4)


@pytest.mark.parametrize(
    "rows",
    [
        [recorded(str(n), n % 2, AGREE, settings={"views": None}) for n in range(9)],
        [recorded(str(n), n % 2, AGREE) for n in range(9)],
        [recorded(str(n), 1, AGREE, DIFFER, self_check=0.5) for n in range(9)],
        [recorded(str(n), n % 2, (), (), self_check=0.5) for n in range(9)],
    ],
    ids=["no views", "plain alone", "all right", "no samples"],
)
def test_there_may_be_nothing_to_compare(rows: list[Recording]) -> None:
    assert evaluate(rows, methods="answer_length", resamples=2).recipes is None


# -- The best one ----------------------------------------------------------------------


def test_the_best_is_chosen_on_one_third_and_measured_on_another() -> None:
    found = compared(third(1) + third(2, swapped=True) + third(3))
    at_equal_calls, at_equal_money = found.at_equal_calls, found.at_equal_money
    assert at_equal_calls is not None
    assert (at_equal_calls.name, at_equal_calls.calls) == ("reasoning", 3)
    assert at_equal_calls.auroc.value == 0.5
    assert at_equal_calls.gain is not None
    assert at_equal_calls.gain.value == -0.5
    assert at_equal_calls.gain.low <= -0.5 <= at_equal_calls.gain.high
    # Samples that reason cost more than plain ones, a check in place of one less.
    assert at_equal_money is not None
    assert (at_equal_money.name, at_equal_money.calls) == ("plain + self-check", 3)
    assert at_equal_money.gain is not None
    assert at_equal_money.gain.value == at_equal_money.auroc.value - 1.0


def test_without_prices_nothing_is_compared_at_equal_money() -> None:
    found = compared(third(1) + third(2), prices=None)
    assert found.at_equal_calls is not None
    assert found.at_equal_money is None


def test_both_thirds_need_right_and_wrong_answers() -> None:
    rows = [
        Recording.from_dict(row.to_dict() | {"label": 1}) if part == 2 else row
        for part in (1, 2, 3)
        for row in third(part)
    ]
    found = compared(rows)
    assert recipe(found, "reasoning").auroc.value > 0
    assert (found.at_equal_calls, found.at_equal_money) == (None, None)


def test_more_calls_are_not_equal_calls() -> None:
    samples = {1: (*AGREE, *AGREE), 0: (*AGREE, *DIFFER)}
    rows = [
        recorded(row.id, row.label, samples[row.label or 0], self_check=0.5)
        for row in third(1) + third(2)
    ]
    found = compared(rows)
    assert recipe(found, "plain", 5).auroc.value == 1.0
    assert found.at_equal_calls is not None
    assert (found.at_equal_calls.name, found.at_equal_calls.calls) == ("plain", 3)
