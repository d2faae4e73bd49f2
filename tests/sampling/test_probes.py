"""What is asked in which order, and when it stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from snne_guard.sampling.collect import Reply
from snne_guard.sampling.probes import (
    Abilities,
    Ask,
    Observations,
    Seen,
    probing,
)
from snne_guard.types import Sample

NONE = Abilities(batch=False, temperature=False, seed=False)


def said(text: str, ask: Ask) -> Seen:
    return Seen(reply=Reply(samples=(Sample(text=text),) * ask.n))


def played(
    abilities: Abilities, answer: Callable[[Ask], Seen]
) -> tuple[list[Ask], Observations]:
    """Return the requests, and what came of them."""
    steps = probing(abilities)
    ask, asked = next(steps), []
    while True:
        asked.append(ask)
        try:
            ask = steps.send(answer(ask))
        except StopIteration as stop:
            return asked, stop.value


class Counter:
    """Says something else each time."""

    def __init__(self) -> None:
        self.said = 0

    def __call__(self, ask: Ask) -> Seen:
        self.said += 1
        return said(f"reply {self.said}", ask)


def test_a_model_that_varies_is_asked_nine_times() -> None:
    asked, seen = played(Abilities(), Counter())
    assert [(ask.index, ask.n, ask.cold) for ask in asked] == [
        (0, 1, False),
        (1, 1, False),
        (0, 1, True),
        (3, 3, False),
        (2, 1, False),
        (1, 1, True),
        (0, 1, False),
        (0, 1, False),
        (0, 1, False),
    ]
    first, again, other = [ask.seed for ask in asked[6:]]
    assert first == again != other
    assert [ask.seed for ask in asked[:6]] == [None] * 6
    assert len({ask.prompt for ask in asked}) == 1
    assert [ask.max_tokens for ask in asked] == [6, 12, *[6] * 7]
    assert not seen.repeats
    parts = (seen.warm, seen.cold, seen.batch, seen.fewer, seen.other, seen.seeded)
    assert [len(part) for part in parts] == [3, 2, 1, 0, 0, 3]


def test_where_there_is_a_doubt_another_prompt_is_tried() -> None:
    asked, seen = played(NONE, lambda ask: said("Paris", ask))
    assert seen.repeats
    assert [ask.max_tokens for ask in asked] == [6, 12, 6, 6, 6]
    prompts = [ask.prompt for ask in asked]
    assert len(set(prompts[:3])) == len(set(prompts[3:])) == 1
    assert prompts[0] != prompts[3]
    assert len(seen.other) == 2


def test_what_is_written_anew_leaves_no_doubt() -> None:
    def greedy(ask: Ask) -> Seen:
        return said("one two three "[: ask.max_tokens], ask)

    asked, seen = played(Abilities(), greedy)
    assert seen.begins_alike
    assert seen.is_greedy
    assert [ask.n for ask in asked] == [1, 1, 1, 3, 1]
    assert (seen.other, seen.seeded) == ([], [])


def test_without_a_temperature_seeds_are_still_of_interest() -> None:
    able = Abilities(batch=False, temperature=False)
    asked, seen = played(able, lambda ask: said("one two three"[: ask.max_tokens], ask))
    assert not seen.is_greedy
    assert len(asked) == 6


def test_a_slow_model_is_asked_for_less() -> None:
    def slow(ask: Ask) -> Seen:
        return replace(said("one two three "[: ask.max_tokens], ask), seconds=4.1)

    asked, seen = played(Abilities(), slow)
    assert [ask.max_tokens for ask in asked] == [6, 3, 3, 3, 3]
    assert seen.first.texts == ("one tw",)
    assert seen.is_greedy


def test_each_run_asks_for_something_new() -> None:
    prompts = {next(probing(Abilities())).prompt for _ in range(20)}
    assert len(prompts) == 20


def test_a_first_request_that_fails_is_the_last() -> None:
    error = RuntimeError("no such key")
    asked, seen = played(Abilities(), lambda _: Seen(error=error))
    assert len(asked) == 1
    assert seen.first.error is error
    assert not seen.repeats


@pytest.mark.parametrize(
    "first",
    [
        Seen(reply=Reply(samples=(Sample(text=" ", reasoned=True),))),
        Seen(error=ValueError("max_tokens must be at least 64")),
        Seen(error=ValueError("max_output_tokens is too low")),
    ],
)
def test_a_model_that_thinks_gets_more_tokens(first: Seen) -> None:
    def answer(ask: Ask) -> Seen:
        return first if ask.max_tokens == 6 else said(str(ask.index), ask)

    asked, seen = played(NONE, answer)
    assert [ask.max_tokens for ask in asked] == [6, 1024, 1024, 1024]
    assert (seen.max_tokens, seen.half) == (1024, 1024)
    assert [one.texts for one in seen.warm] == [("1",), ("0",), ("2",)]


def test_the_users_own_limit_is_kept() -> None:
    low = Abilities(max_tokens=5, batch=False, temperature=False, seed=False)
    asked, _ = played(low, Counter())
    assert [ask.max_tokens for ask in asked] == [2, 5, 2]
    asked, _ = played(low, lambda ask: said("", ask))
    assert asked[1].max_tokens == 5


def test_where_three_are_refused_two_are_asked_for() -> None:
    count = Counter()

    def answer(ask: Ask) -> Seen:
        return Seen(error=ValueError("n")) if ask.n == 3 else count(ask)

    asked, seen = played(Abilities(seed=False), answer)
    assert [ask.n for ask in asked] == [1, 1, 1, 3, 2, 1, 1]
    assert len(seen.fewer[0].texts) == 2


def test_a_seed_that_is_refused_is_not_tried_again() -> None:
    count = Counter()

    def answer(ask: Ask) -> Seen:
        return count(ask) if ask.seed is None else Seen(error=ValueError("seed"))

    _, seen = played(Abilities(), answer)
    assert len(seen.seeded) == 1
