"""How many samples a decision needs with a promise: the calibrated stop on recordings.

On recorded answers of real models, in random orders, beside fixed numbers of samples.
Figures are compared with those that were measured before on larger cuts of the same
data sets; the exit status is 1 if one lies outside of the noise that is stated. How
much of a difference the smaller cuts make at epsilon 0.02 is simulated.

    SNNE_GUARD_SHARED=folder python -m benchmarks.stopping

The folder holds ``data/*.jsonl``; without it there is nothing to measure.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks._stopping_size import allowed, simulated
from benchmarks.certificate import (
    FILES,
    FIRST,
    ORDERS,
    MissedTargets,
    N,
    absent,
    recordings,
    shuffled,
)
from snne_guard.decision import fit_stop
from snne_guard.evaluation import Recording, uncertainty_paths
from snne_guard.types import FloatArray

FOLDS = 10  # each part is judged by rules that were learnt from the others


@dataclass(frozen=True)
class Row:
    """A calibrated stop that was measured before.

    Attributes:
        names: Data sets.
        rounds: Members after each round.
        accept: Share of questions that all n accept.
        epsilon: Share of other decisions that is allowed.
        members: Mean members then.
        other: Share of other decisions then.
    """

    names: tuple[str, ...]
    rounds: tuple[int, ...]
    accept: float
    epsilon: float
    members: float
    other: float

    @property
    def data(self) -> str:
        return "all three" if self.names == POOLED else self.names[0]

    @property
    def rounds_text(self) -> str:
        return ", ".join(map(str, self.rounds))


POOLED, TRIVIA = tuple(FILES), ("TriviaQA",)
ROWS = (
    Row(POOLED, (3, 5, 10), 0.35, 0.02, 7.9, 0.007),
    Row(POOLED, (3, 5, 10), 0.35, 0.05, 5.9, 0.022),
    Row(POOLED, (3, 5, 10), 0.35, 0.10, 4.7, 0.060),
    Row(POOLED, (5, 10), 0.35, 0.02, 7.9, 0.004),
    Row(POOLED, (5, 10), 0.35, 0.05, 6.3, 0.027),
    Row(POOLED, (5, 10), 0.35, 0.10, 5.6, 0.059),
    Row(POOLED, (5, 10), 0.60, 0.02, 8.3, 0.002),
    Row(POOLED, (5, 10), 0.60, 0.05, 6.3, 0.024),
    Row(POOLED, (5, 10), 0.60, 0.10, 5.5, 0.058),
    Row(TRIVIA, (3, 5, 10), 0.35, 0.02, 8.5, 0.005),
    Row(TRIVIA, (3, 5, 10), 0.35, 0.05, 6.9, 0.016),
    Row(TRIVIA, (3, 5, 10), 0.35, 0.10, 5.3, 0.045),
)
BEFORE = {POOLED: 1000, TRIVIA: 500}
"""Questions then; there are 589 and 296 here."""
STRICT = 0.02
"""Here the number of questions counts for more than noise: see ``report_sizes``."""
MEMBERS_NOISE = {0.02: 1.2, 0.05: 0.5, 0.10: 0.4}
DEFAULT_EPSILON = 0.05
OTHER_NOISE = 0.015
ERROR_NOISE = 0.03  # between errors among accepted answers, stopped and at full n
FEWER_FLIPS = 2.5  # how many times more other decisions n = 5 makes, at epsilon 0.05


def paths_of(known: Sequence[Recording], rng: np.random.Generator) -> FloatArray:
    """Return ``(questions, 9)`` ``u`` of 2 to 10 members, samples in a new order."""
    mixed = [
        replace(recording, samples=tuple(shuffled(recording, rng)))
        for recording in known
    ]
    return uncertainty_paths(mixed, rounds=range(FIRST, N + 1), similarity="rouge_l")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a way of sampling did, ``(orders, questions)`` each.

    Attributes:
        members: Members that were drawn.
        rounds: Rounds that they took.
        accepted: Whether the answer was accepted.
        whole: Whether all n accept it.
        wrong: Whether the answer is wrong.
    """

    members: FloatArray
    rounds: FloatArray
    accepted: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    wrong: NDArray[np.bool_]

    def figures(self, weights: FloatArray) -> FloatArray:
        """Return the figures for ``(draws, questions)`` weights of the questions.

        Returns:
            ``(5, draws)`` mean members, mean rounds, share of other decisions, error
            among accepted answers, and that error less the one with all n.
        """
        total = weights.sum(axis=1)

        def mean(values: FloatArray) -> FloatArray:
            average: FloatArray = weights @ values.mean(axis=0) / total
            return average

        def error(accepted: NDArray[np.bool_]) -> FloatArray:
            wrong: NDArray[np.bool_] = accepted & self.wrong
            return mean(wrong.astype(np.float64)) / mean(accepted.astype(np.float64))

        return np.array(
            [
                mean(self.members),
                mean(self.rounds),
                mean((self.accepted != self.whole).astype(np.float64)),
                error(self.accepted),
                error(self.accepted) - error(self.whole),
            ]
        )

    @property
    def mean(self) -> FloatArray:
        return self.figures(np.ones((1, self.members.shape[1])))[:, 0]

    def interval(self) -> FloatArray:
        """Return 95 % limits of the figures, questions drawn anew (bootstrap)."""
        count = self.members.shape[1]
        rng = np.random.default_rng(0)
        weights = rng.multinomial(count, np.full(count, 1 / count), size=1000)
        return np.quantile(
            self.figures(weights.astype(np.float64)), (0.025, 0.975), axis=1
        )


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Recorded questions in several orders of their samples.

    Attributes:
        paths: ``(orders, questions, 9)`` ``u`` of 2 to 10 members.
        wrong: ``(questions,)`` whether the answer is wrong.
    """

    paths: FloatArray
    wrong: NDArray[np.bool_]

    @classmethod
    def of(cls, names: Sequence[str], *, orders: int, seed: int = 0) -> Pool:
        known = [recording for name in names for recording in recordings(name)]
        rng = np.random.default_rng(seed)
        return cls(
            paths=np.array([paths_of(known, rng) for _ in range(orders)]),
            wrong=np.array([recording.label == 0 for recording in known]),
        )

    def fixed(self, members: int, accept: float) -> Outcome:
        """Return what a fixed number of members does, with a threshold of its own."""
        own = self.paths[:, :, members - FIRST]
        return self._outcome(
            np.full(own.shape, float(members)),
            np.ones(own.shape),
            own <= np.quantile(own, accept, axis=1, keepdims=True),
            accept,
        )

    def stopped(self, row: Row, *, folds: int = FOLDS) -> Outcome:
        """Return what rules do on questions that they were not learnt from."""
        shape = self.paths.shape[:2]
        members, rounds = np.zeros(shape), np.zeros(shape)
        accepted = np.zeros(shape, dtype=np.bool_)
        for order, table in enumerate(self.paths):
            paths = table[:, [count - FIRST for count in row.rounds]]
            threshold = float(np.quantile(paths[:, -1], row.accept))
            rng = np.random.default_rng(order)
            fold = rng.permutation(len(paths)) % folds
            for held_out in range(folds):
                there = fold == held_out
                rule = fit_stop(
                    paths[~there],
                    rounds=row.rounds,
                    threshold=threshold,
                    epsilon=row.epsilon,
                    seed=order,
                )
                ends, decided = rule.replay(paths[there])
                members[order, there] = np.array(row.rounds)[ends]
                rounds[order, there] = ends + 1
                accepted[order, there] = decided
        return self._outcome(members, rounds, accepted, row.accept)

    def _outcome(
        self,
        members: FloatArray,
        rounds: FloatArray,
        accepted: NDArray[np.bool_],
        accept: float,
    ) -> Outcome:
        final = self.paths[:, :, -1]
        return Outcome(
            members=members,
            rounds=rounds,
            accepted=accepted,
            whole=final <= np.quantile(final, accept, axis=1, keepdims=True),
            wrong=np.broadcast_to(self.wrong, accepted.shape),
        )


def as_expected(row: Row, found: FloatArray, fixed_five: FloatArray) -> bool:
    """Return whether the figures of a row lie within the noise that is stated."""
    members, _, other, _, error = found.tolist()
    fewer = row.epsilon != DEFAULT_EPSILON or fixed_five[2] >= FEWER_FLIPS * other
    return bool(
        abs(members - row.members) <= MEMBERS_NOISE[row.epsilon]
        and abs(other - row.other) <= OTHER_NOISE
        and other <= row.epsilon
        and abs(error) <= ERROR_NOISE
        and fewer
    )


def report_calibrated(missed: MissedTargets, *, orders: int = ORDERS) -> None:
    print("## The calibrated stop (the answer and 9 samples; confidence 0.9)\n")
    print(
        "In brackets: 95 % intervals over questions. Last: what was measured before.\n"
    )
    print(
        "| data | accepted | rounds | epsilon | members | rounds drawn "
        "| other decisions | error among accepted | less that of n = 10 "
        "| members, other before |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    pools = {names: Pool.of(names, orders=orders) for names in (POOLED, TRIVIA)}
    shown: set[tuple[tuple[str, ...], float]] = set()
    for row in ROWS:
        pool = pools[row.names]
        head = f"| {row.data} | {row.accept:.2f}"
        if (row.names, row.accept) not in shown:
            shown.add((row.names, row.accept))
            for members in (3, 5, 10):
                print(
                    f"{head} | {members} | |{line(pool.fixed(members, row.accept))} |"
                )
        found = pool.stopped(row)
        holds = as_expected(row, found.mean, pool.fixed(5, row.accept).mean)
        mark = missed.expect(holds=holds, what=f"calibrated stop, {row}")
        print(
            f"{head} | {row.rounds_text} | {row.epsilon} |{line(found)} "
            f"{row.members}, {row.other} |{mark}"
        )
    print()
    report_sizes(missed, pools)


def report_sizes(missed: MissedTargets, pools: Mapping[tuple[str, ...], Pool]) -> None:
    print(f"## What the number of recordings does at epsilon {STRICT}\n")
    print(
        "Rules learnt from simulated data sets of so many questions: half of those "
        "that there\nwere before, as many as here (nine tenths), and all that there "
        "were; how many of them\nwere learnt from is not known. In brackets: 95 % "
        "intervals, for one rule, and for the\nmean of a data set over its splits.\n"
    )
    print(
        "| data | accepted | rounds | questions | other decisions allowed "
        "| rules that never stop | members | one rule | a data set "
        "| members before |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in (row for row in ROWS if row.epsilon == STRICT):
        paths = pools[row.names].paths[:, :, [count - FIRST for count in row.rounds]]
        before = BEFORE[row.names]
        here = paths.shape[1] * (FOLDS - 1) // FOLDS
        limits: list[tuple[float, float]] = []
        for questions in (before // 2, here, before):
            found = simulated(
                paths,
                questions=questions,
                rounds=row.rounds,
                accept=row.accept,
                epsilon=row.epsilon,
            )
            limits.append(found.of_a_data_set())
            print(
                f"| {row.data} | {row.accept:.2f} | {row.rounds_text} "
                f"| {questions} | {allowed(questions, row.epsilon)} "
                f"| {found.never:.2f} | {found.mean:.2f} "
                f"| {brackets(found.of_one_rule())} | {brackets(limits[-1])} |",
                end="\n" if questions != before else " ",
            )
        (_, most), _, (least, _) = limits
        mark = missed.expect(
            holds=least <= row.members <= most,
            what=f"calibrated stop, {row}, at its number of questions",
        )
        print(f"{row.members} |{mark}")
    print()


def brackets(limits: tuple[float, float]) -> str:
    low, high = limits
    return f"[{low:.2f}, {high:.2f}]"


def line(outcome: Outcome) -> str:
    """Return the cells of what was measured."""
    digits = (2, 2, 3, 3, 3)
    limits = zip(outcome.mean, *outcome.interval(), digits, strict=True)
    cells = [
        f" {mean:.{d}f} [{low:.{d}f}, {high:.{d}f}] |" for mean, low, high, d in limits
    ]
    return "".join(cells)


def main() -> int:
    if absent():
        return 0
    missed = MissedTargets()
    report_calibrated(missed)
    return missed.status()


if __name__ == "__main__":
    sys.exit(main())
