"""Recipes: ways to spend the calls of a guard, compared on one set of recordings."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from pydantic import TypeAdapter, ValidationError

from snne_guard.checks import check_whole
from snne_guard.evaluation.bootstrap import Bootstrap, bootstrap
from snne_guard.evaluation.metrics import auroc
from snne_guard.evaluation.recordings import Recording, shard_of
from snne_guard.evaluation.rescore import PLAIN, recorded_replies
from snne_guard.evaluation.results import BestRecipe, Recipe, RecipeComparison
from snne_guard.sampling.members import select_members
from snne_guard.scorers import score
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.types import Cost, DrawCost, FloatArray, IntArray, Prices, Sample

__all__ = ["RecipeTable"]

_CALLS = (3, 4, 5, 7, 11)
_DRAWS = TypeAdapter(tuple[DrawCost, ...])


@dataclass(slots=True, kw_only=True)
class _Plan:
    """A recipe while it is measured.

    Attributes:
        places: Which of the recorded samples it takes.
        views: Their views.
        check: Whether its last call is a self-check.
        us: ``u`` of each question, 1 where a guard has none.
        cost: Of all of them, None as soon as one does not tell it.
    """

    name: str
    calls: int
    places: tuple[int, ...]
    views: tuple[str, ...]
    check: bool
    us: list[float] = field(default_factory=list[float])
    cost: Cost | None = field(default_factory=Cost)


class RecipeTable:
    """Plain samples, other views and a self-check, compared at equal calls and money.

    The score is the default one, without log-probabilities. An answer whose set cannot
    be scored counts as wholly uncertain. The best recipe is chosen on the first third
    of the questions and measured on the second, for the best of many looks better than
    it is where it was chosen. The last third is left for a threshold.

    Args:
        calls: Of the plain recipe that the best ones are compared with.
        prices: Of tokens, for the money.

    Raises:
        ConfigurationError: ``calls`` is no whole number of at least 2.
    """

    def __init__(self, *, calls: int = 5, prices: Prices | None = None) -> None:
        check_whole(calls, what="calls", least=2)
        self._calls = calls
        self._prices = prices
        self._layout: tuple[tuple[str, ...], bool] | None = None
        self._plans: list[_Plan] = []
        self._thirds: list[int] = []
        self._correct: list[int] = []

    def add(self, row: Recording, correct: int | None) -> None:
        """Add a question; one without a verdict, or drawn in another way, is left out.

        Raises:
            InputError: What it tells of its draws does not fit together.
        """
        if correct is None:
            return
        answer, *samples = recorded_replies(row)
        # A check that says neither Yes nor No is recorded in the settings alone.
        asked = (row.settings or {}).get("self_check")
        checked = row.self_check is not None or asked is not None
        layout = tuple(each.view or PLAIN for each in samples), checked
        if self._layout is None:
            self._layout = layout
            plans = [*_plans(layout[0], self._calls, checked=checked)]
            self._plans = [] if {plan.name for plan in plans} <= {PLAIN} else plans
        if layout != self._layout or not self._plans:
            return
        self._thirds.append(shard_of(row.id, 3))
        self._correct.append(correct)
        drawn = _draws(row)
        p_correct = UNKNOWN if row.self_check is None else row.self_check
        scored = {
            places: _disagreement(row, answer, [samples[at] for at in places])
            for places in {plan.places for plan in self._plans}
        }
        for plan in self._plans:
            u = scored[plan.places]
            if u is not None and plan.check:
                u = SelfCheck().uncertainty(disagreement=u, p_correct=p_correct)
            plan.us.append(1.0 if u is None else u)
            cost = _cost(drawn, plan)
            plan.cost = plan.cost and cost and plan.cost + cost

    def compared(self, *, draws: int) -> RecipeComparison | None:
        """Return what the recipes are worth, None where there is nothing to compare.

        Args:
            draws: Bootstrap draws behind the 90 % intervals.
        """
        if len(set(self._correct)) <= 1:
            return None
        us = {_key(plan): np.array(plan.us) for plan in self._plans}
        thirds, correct = np.array(self._thirds), np.array(self._correct)
        draw_again = partial(bootstrap, metrics=("auroc",), draws=draws)
        figures = draw_again(us, correct)
        recipes = [
            Recipe(
                name=plan.name,
                calls=plan.calls,
                rounds=1 + plan.check,
                auroc=figures.interval(_key(plan), "auroc"),
                cost=_priced(plan.cost, self._prices),
            )
            for plan in self._plans
        ]
        usual = f"{self._calls} {PLAIN}"
        plain = next((each for each in recipes if _key(each) == usual), None)
        best = partial(
            _best,
            plain=plain,
            us=us,
            correct=correct,
            thirds=thirds,
            draw_again=draw_again,
        )
        first, second, third = (int((thirds == part).sum()) for part in (1, 2, 3))
        return RecipeComparison(
            calls=self._calls,
            thirds=(first, second, third),
            recipes=tuple(recipes),
            at_equal_calls=best([r for r in recipes if r.calls == self._calls]),
            at_equal_money=best([r for r in recipes if _costs_no_more(r, plain)]),
        )


def _costs_no_more(recipe: Recipe, plain: Recipe | None) -> bool:
    """Return whether both have a price, and the recipe no higher one."""
    if plain is None or plain.cost is None or recipe.cost is None:
        return False
    price, limit = recipe.cost.money, plain.cost.money
    return price is not None and limit is not None and price <= limit


def _plans(turns: Sequence[str], calls: int, *, checked: bool) -> Iterator[_Plan]:
    """Yield the recipes for which there are samples, the plain one first."""
    kinds = {name: {name} for name in (PLAIN, *turns)}
    if len(set(turns)) > 1:
        kinds.setdefault("views", set(turns))
    for n, (name, taken) in itertools.product(sorted({*_CALLS, calls}), kinds.items()):
        places = [at for at, view in enumerate(turns) if view in taken]
        for check in (False, True) if checked else (False,):
            samples = n - 1 - check
            if 0 < samples <= len(places):
                yield _Plan(
                    name=f"{name} + check" if check else name,
                    calls=n,
                    places=tuple(places[:samples]),
                    views=tuple(turns[at] for at in places[:samples]),
                    check=check,
                )


def _key(recipe: _Plan | Recipe) -> str:
    return f"{recipe.calls} {recipe.name}"


# -- What a recipe finds ---------------------------------------------------------------


def _disagreement(
    row: Recording, answer: Sample, samples: Sequence[Sample]
) -> float | None:
    """Return what a guard would have scored, None where it would not have."""
    members = select_members(answer, samples, include_answer=True)
    enough = max(2, math.ceil((1 + len(samples)) / 2))  # min_samples of a guard
    if not members.answer_readable or len(members.texts) < enough:
        return None
    return score(members.texts, question=row.question, method="snne").disagreement


def _best(
    affordable: Sequence[Recipe],
    *,
    plain: Recipe | None,
    us: Mapping[str, FloatArray],
    correct: IntArray,
    thirds: IntArray,
    draw_again: Callable[..., Bootstrap],
) -> BestRecipe | None:
    """Return the recipe that ranks best on the first third, measured on the second."""
    first, second = thirds == 1, thirds == 2  # noqa: PLR2004 - the second third
    graded = all(len(set(correct[third])) > 1 for third in (first, second))
    if plain is None or not affordable or not graded:
        return None
    chosen = max(
        affordable, key=lambda each: auroc(us[_key(each)][first], correct[first])
    )
    pair = {_key(each): us[_key(each)][second] for each in (chosen, plain)}
    figures = draw_again(pair, correct[second])
    return BestRecipe(
        name=chosen.name,
        calls=chosen.calls,
        auroc=figures.interval(_key(chosen), "auroc"),
        gain=figures.difference(_key(chosen), _key(plain), "auroc"),
    )


# -- What a recipe costs ---------------------------------------------------------------


def _draws(row: Recording) -> tuple[DrawCost, ...]:
    """Return what each request took; empty where the recording does not tell."""
    drawn = row.extra.get("drawn")
    try:
        return _DRAWS.validate_python(drawn["draws"] if isinstance(drawn, dict) else ())
    except (KeyError, ValidationError):
        return ()


def _cost(draws: Sequence[DrawCost], plan: _Plan) -> Cost | None:
    """Return what a recipe takes for a question, None if its recording does not say."""
    total = Cost()
    left = Counter([("answer", PLAIN), *(("sample", view) for view in plan.views)])
    for draw in draws:
        kind = (draw.role, draw.view or PLAIN)
        taken = min(left[kind], draw.samples)
        left[kind] -= taken
        if taken:
            share = taken / draw.samples
            total += replace(
                draw,
                completion_tokens=round(share * draw.completion_tokens),
                reasoning_tokens=round(share * draw.reasoning_tokens),
            )
        elif draw.role == "check" and plan.check:
            total += draw
    return None if any(left.values()) else total


def _priced(cost: Cost | None, prices: Prices | None) -> Cost | None:
    if cost is None:
        return None
    return replace(cost, money=None if prices is None else prices.of(cost))
