"""The doctor names what makes samples untrustworthy."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from snne_guard.cost import Cost
from snne_guard.doctor import Report, compare_words, examine
from snne_guard.engine import Draw, Response
from snne_guard.types import Reply

_numbers = itertools.count()


class Model:
    """Says something new each time, unless told to be odd."""

    def __init__(self, **odd: Any) -> None:
        self.odd = odd

    def send(self, draw: Draw) -> Response:
        if draw.role == "self_check":
            return self._check(draw)
        if draw.n > 1 and "refuses_n" in self.odd:
            raise ValueError("n must be 1")
        n = 1 if "ignores_n" in self.odd else draw.n
        return Response(
            replies=tuple(self._sample() for _ in range(n)),
            cost=Cost(calls=1, attempts=1, completion_tokens=n),
            temperature_set="no_temperature" not in self.odd,
        )

    async def asend(self, draw: Draw) -> Response:
        raise AssertionError

    def _check(self, draw: Draw) -> Response:
        if "no_check" in self.odd:
            raise ConnectionError
        right = draw.turns[0] == "Paris" or "flatters" in self.odd
        word = Reply(text="Yes" if right else "No")
        cost = Cost(calls=1, attempts=2, completion_tokens=1)
        return Response(replies=(word,), cost=cost, p_correct=0.9 if right else 0.1)

    def _sample(self) -> Reply:
        number = 0 if "greedy" in self.odd else next(_numbers)
        return Reply(
            text="" if "silent" in self.odd else f"Village {number}",
            truncated="cut" in self.odd,
            token_logprobs=None if "no_logprobs" in self.odd else (-1.0,),
            model="m",
        )


def examined(*, n: bool = True, **odd: Any) -> Report:
    parameters = ["logprobs", *["n"] * n]
    return examine(lambda _: Model(**odd), parameters=parameters)


def test_a_sound_model_can_be_trusted() -> None:
    report = examined()
    assert report.ok
    assert {found.status for found in report.findings} == {"works"}
    assert (report.model, report.fix) == ("m", "")
    assert (report.cost.calls, report.cost.attempts) == (7, 9)


@pytest.mark.parametrize(
    ("odd", "aspect", "status", "ok"),
    [
        ("greedy", "variation", "ignored", False),
        ("silent", "variation", "broken", False),
        ("cut", "variation", "broken", False),
        ("no_temperature", "temperature", "rejected", True),
        ("ignores_n", "n", "ignored", True),
        ("refuses_n", "n", "rejected", True),
        ("no_logprobs", "logprobs", "missing", True),
        ("no_check", "self_check", "missing", True),
    ],
)
def test_what_is_odd_is_named(odd: str, aspect: str, status: str, ok: bool) -> None:
    report = examined(**{odd: True})
    found = next(one for one in report.findings if one.aspect == aspect)
    assert (found.status, report.ok) == (status, ok)
    assert bool(report.fix) is not ok


def test_a_self_check_that_says_yes_to_everything_is_named() -> None:
    found = examined(flatters=True).findings[-1]
    assert (found.aspect, found.status) == ("self_check", "broken")
    assert "it says Yes to everything" in found.message


# -- Other models ----------------------------------------------------------------------

FACTS = ("Paris", "7", "William Shakespeare", "5", "Mercury")
PROSE = (
    "The capital of France is Paris.",
    "There are seven days in a week.",
    "It was written by William Shakespeare.",
    "2 + 3 = 5",
    "Mercury is the planet closest to the sun.",
)


class Fixed:
    """Gives texts in turn; an error where a text is one."""

    def __init__(self, *texts: Any) -> None:
        self.texts = iter(texts)
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> Any:
        self.asked.append(prompt)
        return self

    def send(self, draw: Draw) -> Response:
        assert draw.role == "answer"
        text = next(self.texts)
        if isinstance(text, Exception):
            raise text
        return Response(replies=(Reply(text=text),), cost=Cost(calls=1))

    async def asend(self, draw: Draw) -> Response:
        raise AssertionError


@pytest.mark.parametrize("said", [FACTS, PROSE, [f"**{one}**" for one in FACTS]])
def test_models_that_say_the_same_in_their_words_compare(said: Any) -> None:
    own, other = Fixed(*FACTS), Fixed(*said)
    found, cost = compare_words(own, other, name="b")
    assert (found.aspect, found.status, found.fix) == ("other model b", "works", "")
    assert (cost.calls, own.asked) == (10, other.asked)


@pytest.mark.parametrize(
    ("said", "compare"),
    [
        (("パリ", "七", "シェイクスピア", "五つ", "水星"), 0),
        (("As a model, I would rather not say.",) * 5, 0),
        ((*FACTS[:3], "Four", "Venus"), 3),
        (("",) * 5, 0),
    ],
)
def test_models_whose_words_do_not_compare_are_named(said: Any, compare: int) -> None:
    found, _ = compare_words(Fixed(*FACTS), Fixed(*said), name="b")
    assert found.status == "broken"
    assert f"{compare} of 5 easy questions" in found.message
    assert found.fix == ""  # samples of the guarded model can be trusted all the same


def test_an_other_model_that_fails_is_named() -> None:
    found, cost = compare_words(Fixed(*FACTS), Fixed(ConnectionError("x")), name="b")
    assert (found.status, cost.calls) == ("broken", 1)
    assert "ConnectionError" in found.message
