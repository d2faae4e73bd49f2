"""Recipes: ways to spend the calls of a guard, compared on one set of recordings."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from snne_guard.cost import Cost, Prices, RequestCost
from snne_guard.evaluation.metrics import Interval, auroc, bootstrap
from snne_guard.evaluation.recorded_calls import PLAIN, how_drawn
from snne_guard.evaluation.recordings import shard_of
from snne_guard.evaluation.replaying import RecordedCall, view_named
from snne_guard.self_check import UNKNOWN
from snne_guard.settings import GuardSettings

_CALLS = (3, 4, 5, 7, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One way to spend the calls of a guard: what it finds, and what it costs.

    Attributes:
        name: ``"plain"``, the name of a view, or ``"views"`` for all views in turn;
            with ``" + NAME"`` for each other model that draws one of the samples, and
            ``" + self-check"`` where the last call is a self-check.
        calls: The answer, all samples, and the self-check if there is one.
        rounds: Requests that wait for one another: 2 with a self-check, else 1.
        auroc: How well it ranks wrong answers above right ones.
        cost: Total over all questions; None if the recordings do not say. Its money is
            None where a price is unknown. Of a request for several samples, the prompt
            counts in full, and the output in proportion to the samples that are used.
        gain: How far it exceeds another one, on the same resamples: a best recipe the
            plain one; one with other models the same without them, at as many calls.
    """

    name: str
    calls: int
    rounds: int
    auroc: Interval
    cost: Cost | None
    gain: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeComparison:
    """How the recipes compare on one set of recordings.

    The best ones are chosen on the first third of the questions; their ``auroc`` and
    ``gain`` are those on the second third.

    Attributes:
        calls: Calls of the plain recipe that the best ones are compared with.
        thirds: Questions in each third, by ``shard_of`` their ids.
        recipes: By calls, the plain one first.
        at_equal_calls: The best of the recipes of as many calls. None where there are
            too few plain samples, or right or wrong answers are missing in a third.
        at_equal_money: The best of the recipes that cost no more than the plain one;
            None also where the money is unknown.
    """

    calls: int
    thirds: tuple[int, int, int]
    recipes: tuple[Recipe, ...]
    at_equal_calls: Recipe | None
    at_equal_money: Recipe | None


@dataclass(slots=True, kw_only=True)
class _Plan:
    """A recipe while it is measured: the options of a guard, and a name."""

    name: str
    base: str
    settings: GuardSettings
    us: list[float] = field(default_factory=list[float])
    cost: Cost | None = field(default_factory=lambda: Cost(money=0.0))

    @property
    def self_check(self) -> bool:
        return self.settings.self_check_used is not None

    @property
    def key(self) -> str:
        return f"{self.settings.n} {self.name}"


class RecipeTable:
    """Plain samples, views, other models and a self-check, at equal calls and money.

    The score is the default one, without log-probabilities. An answer whose set cannot
    be scored counts as wholly uncertain. The best recipe is chosen on the first third
    of the questions and measured on the second, since the best of many looks better
    than it is on the questions that chose it. The last third is left for a threshold.
    """

    def __init__(
        self,
        *,
        calls: int = 5,
        prices: Prices | None = None,
        other_prices: Mapping[str, Prices] | None = None,
    ) -> None:
        self._calls = calls
        self._prices: dict[str | None, Prices | None] = {None: prices}
        self._prices.update(other_prices or {})
        self._layout: tuple[tuple[str, ...], tuple[str, ...], bool] | None = None
        self._plans: list[_Plan] = []
        self._thirds: list[int] = []
        self._correct: list[int] = []

    def add(self, call: RecordedCall, correct: int | None) -> None:
        """Add a question that has a verdict, if it was drawn as the first one was."""
        if correct is None:
            return
        row = call.recording
        # A self-check that says neither Yes nor No is recorded in the settings alone.
        asked = (row.settings or {}).get("self_check")
        has_self_check = row.self_check is not None or asked is not None
        layout = call.views, row.other_models, has_self_check
        if self._layout is None:
            self._layout = layout
            checks = (False, True) if has_self_check else (False,)
            plans = [*_plans(call.views, row.other_models, checks, self._calls)]
            self._plans = [] if {plan.name for plan in plans} <= {PLAIN} else plans
        if layout != self._layout or not self._plans:
            return
        self._thirds.append(shard_of(row.id, 3))
        self._correct.append(correct)
        requests = how_drawn(row).requests
        p_correct = UNKNOWN if row.self_check is None else row.self_check
        disagreement: dict[Any, float | None] = {}
        for plan in self._plans:
            used = plan.settings.self_check_used
            # A self-check changes nothing of the replies.
            replies = plan.settings.sample_views, plan.settings.other_models
            if replies not in disagreement:
                found = call.assessed(plan.settings, question=row.question)
                disagreement[replies] = found.disagreement
            u = disagreement[replies]
            if u is not None and used is not None:
                u = used.uncertainty(disagreement=u, p_correct=p_correct)
            plan.us.append(1.0 if u is None else u)
            cost = _cost(requests, plan, self._prices)
            plan.cost = plan.cost and cost and plan.cost + cost

    def compared(self, *, resamples: int) -> RecipeComparison | None:
        """Return the comparison of the recipes, None if there is nothing to compare."""
        if len(set(self._correct)) <= 1:
            return None
        us = {plan.key: np.array(plan.us) for plan in self._plans}
        correct, thirds = np.array(self._correct), np.array(self._thirds)
        measured = partial(bootstrap, metrics=("auroc",), resamples=resamples)
        figures = measured(us, correct)
        recipes = {
            plan.key: Recipe(
                name=plan.name,
                calls=plan.settings.n,
                rounds=1 + plan.self_check,
                auroc=figures.interval(plan.key, "auroc"),
                cost=plan.cost,
                gain=figures.difference(plan.key, own, "auroc")
                if plan.settings.other_models
                and (own := f"{plan.settings.n} {plan.base}") in us
                else None,
            )
            for plan in self._plans
        }
        plain = f"{self._calls} {PLAIN}"
        first, second, third = (thirds == part for part in (1, 2, 3))
        graded = all(len(set(correct[part])) > 1 for part in (first, second))

        def best(affordable: Sequence[str]) -> Recipe | None:
            """Return the best recipe of the first third, measured on the second."""
            if plain not in affordable or not graded:
                return None
            on_first = {
                key: auroc(us[key][first], correct[first]) for key in affordable
            }
            chosen = max(affordable, key=on_first.__getitem__)
            pair = {key: us[key][second] for key in (chosen, plain)}
            figures = measured(pair, correct[second])
            return replace(
                recipes[chosen],
                auroc=figures.interval(chosen, "auroc"),
                gain=figures.difference(chosen, plain, "auroc"),
            )

        money = {
            key: one.cost.money
            for key, one in recipes.items()
            if one.cost and one.cost.money is not None
        }
        limit = money.get(plain, -math.inf)
        return RecipeComparison(
            calls=self._calls,
            thirds=(int(first.sum()), int(second.sum()), int(third.sum())),
            recipes=tuple(recipes.values()),
            at_equal_calls=best(
                [key for key, one in recipes.items() if one.calls == self._calls]
            ),
            at_equal_money=best([key for key, paid in money.items() if paid <= limit]),
        )


def _plans(
    views: Sequence[str], others: Sequence[str], checks: Sequence[bool], calls: int
) -> Iterator[_Plan]:
    """Yield the recipes for which there are samples, the plain one first."""
    # None, each alone, and all.
    mixes = [
        (),
        *((name,) for name in others),
        *([tuple(others)] if len(others) > 1 else []),
    ]
    kinds = {name: [name] for name in (PLAIN, *views)}
    if len(set(views)) > 1:
        kinds.setdefault("views", [*dict.fromkeys(views)])
    for n, (name, taken), mix, self_check in itertools.product(
        sorted({*_CALLS, calls}), kinds.items(), mixes, checks
    ):
        recorded = sum(view in taken for view in views)
        if 0 < n - 1 - len(mix) - self_check <= recorded:
            settings = GuardSettings(
                n=n,
                method="snne",
                views=[] if taken == [PLAIN] else [*map(view_named, taken)],
                other_models=mix,
                self_check=self_check,
                tool_calls="score",
            )
            check = ["self-check"] * self_check
            yield _Plan(
                name=" + ".join([name, *mix, *check]),
                base=" + ".join([name, *check]),
                settings=settings,
            )


def _cost(
    requests: Sequence[RequestCost],
    plan: _Plan,
    prices: Mapping[str | None, Prices | None],
) -> Cost | None:
    """Return a recipe's cost for a question, None if its recording does not say."""
    total = Cost(money=0.0)
    views = (PLAIN if v is None else v.name for v in plan.settings.sample_views)
    left = Counter[tuple[str, str, str | None]]([("answer", PLAIN, None)])
    left.update(("sample", view, None) for view in views)
    left.update(("sample", PLAIN, name) for name in plan.settings.other_models)
    for request in requests:
        kind = (request.role, request.view or PLAIN, request.other_model)
        used: Cost = request
        if taken := min(left[kind], request.replies):
            left[kind] -= taken
            share = taken / request.replies
            used = replace(
                request,
                completion_tokens=round(share * request.completion_tokens),
                reasoning_tokens=round(share * request.reasoning_tokens),
            )
        elif request.role != "self_check" or not plan.self_check:
            continue
        price = prices.get(request.other_model)
        total += replace(used, money=None if price is None else price.of(used))
    return None if any(left.values()) else total
