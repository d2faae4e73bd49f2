"""How many samples a decision needs for certain: the certificate on recordings.

On recorded answers of real models, in random orders. Figures are compared with those
that were measured before on larger cuts of the same data sets; the exit status is 1 if
one lies outside of the noise that is stated, or if any decision is another one.

    SNNE_GUARD_SHARED=folder python benchmarks/certificate.py

The folder holds ``data/*.jsonl``; without it there is nothing to measure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from snne_guard.evaluation import Recording, read_recordings
from snne_guard.scorers import METHODS, uncertainty_range
from snne_guard.similarity import rouge_l
from snne_guard.types import FloatArray, MethodInputs

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("SNNE_GUARD_SHARED") or ROOT / ".." / "shared")
FILES = {
    "TriviaQA": "generations_uqnlg_triviaqa.jsonl",
    "hotpot": "generations_sac3_hotpot.jsonl",
    "NQ": "generations_sac3_nq.jsonl",
}
WITH_LOGPROBS = "recorded_qwen15.jsonl"
N = 10  # members of the whole response set
FIRST = 2  # members of the smallest one that has an uncertainty
ORDERS = 12  # random orders of the samples
SNNE, WSNNE = METHODS["snne"], METHODS["wsnne"]

CERTIFICATE = {
    ("TriviaQA", 0.35): 8.8,
    ("TriviaQA", 0.50): 8.8,
    ("TriviaQA", 0.80): 6.7,
    ("hotpot", 0.35): 8.8,
    ("hotpot", 0.50): 9.0,
    ("hotpot", 0.80): 8.5,
    ("NQ", 0.35): 8.7,
    ("NQ", 0.50): 9.1,
    ("NQ", 0.80): 8.6,
}
"""Mean members with the certificate, one at a time: data set, accept rate."""
CERTIFICATE_NOISE = 0.3


class MissedTargets:
    """Collects what lies outside of the noise, while everything is printed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def expect(self, *, holds: bool, what: str) -> str:
        """Return a mark for the printed line."""
        if not holds:
            self.missed.append(what)
        return "" if holds else "  <- outside of the noise"

    def status(self) -> int:
        """Say what was missed and return the exit status."""
        for what in self.missed:
            print(f"outside of the noise: {what}")
        return 1 if self.missed else 0


def recordings(name: str) -> list[Recording]:
    path = SHARED / "data" / FILES.get(name, name)
    rows = (row for _, row in read_recordings(path, strict=True))
    return [row for row in rows if isinstance(row, Recording)]


def shuffled(recording: Recording, rng: np.random.Generator) -> list[str]:
    return [
        recording.samples[place] for place in rng.permutation(len(recording.samples))
    ]


def certificate_ranges(
    known: Sequence[Recording], *, orders: int, metric: bool = False, seed: int = 0
) -> FloatArray:
    """Return for every question, in several orders, between which u it will end.

    Args:
        known: The questions.
        orders: Orders of their samples.
        metric: Whether use is made of the distance that ROUGE-L comes from.
        seed: Of the orders.

    Returns:
        ``(orders * questions, 9, 2)`` limits after 2 to 10 samples, without the
        answer; after the last both are the ``u`` itself.
    """
    rng = np.random.default_rng(seed)
    found: list[list[tuple[float, float]]] = []
    for _ in range(orders):
        for recording in known:
            matrix = rouge_l(shuffled(recording, rng)[:N])
            limits = [
                uncertainty_range(
                    SNNE, MethodInputs(similarity=matrix[:m, :m], metric=metric), N - m
                )
                or (0.0, 1.0)
                for m in range(FIRST, N)
            ]
            u = uncertainty_of(matrix)
            found.append([*limits, (u, u)])
    return np.array(found)


def uncertainty_of(matrix: FloatArray) -> float:
    value = SNNE.compute(MethodInputs(similarity=matrix))
    return SNNE.uncertainty(value, len(matrix)) or 0.0


def certified(
    ranges: FloatArray, accept: float, rounds: Sequence[int]
) -> tuple[float, float, int]:
    """Return mean members, mean rounds, and how many decisions are other ones."""
    final = ranges[:, -1, 0]
    threshold = np.quantile(final, accept)
    places = [members - FIRST for members in rounds]
    accepted = ranges[:, places, 1] <= threshold
    stops = accepted | (ranges[:, places, 0] > threshold)
    ends = stops.argmax(axis=1)
    decided = accepted[np.arange(len(ends)), ends]
    other = int((decided != (final <= threshold)).sum())
    return float(np.array(rounds)[ends].mean()), float((ends + 1).mean()), other


def report_certificate(missed: MissedTargets, *, orders: int = ORDERS) -> None:
    print(f"## The certificate (SNNE of {N} samples)\n")
    print("Mean samples one by one; in rounds of 5, 8, 10, with mean rounds.\n")
    print(
        "| data | accepted | any similarity | before | in rounds "
        "| ROUGE-L | in rounds |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in FILES:
        known = recordings(name)
        plain, sharper = (
            certificate_ranges(known, orders=orders, metric=metric)
            for metric in (False, True)
        )
        for accept in (0.35, 0.50, 0.80):
            before = CERTIFICATE[name, accept]
            single, cells, other = certificate_cells(plain, accept)
            least, sharp_cells, more = certificate_cells(sharper, accept)
            near = abs(single - before) <= CERTIFICATE_NOISE and least <= single
            mark = missed.expect(
                holds=near and other + more == 0, what=f"certificate, {name}, {accept}"
            )
            print(
                f"| {name} | {accept:.2f} | {single:.2f} | {before} | {cells} "
                f"| {least:.2f} | {sharp_cells} |{mark}"
            )
    print()


def weighted_ranges(known: Sequence[Recording]) -> FloatArray:
    """Return the same for WSNNE of the answer and 9 samples, in their one order.

    A sample without log-probabilities would make it SNNE, so both limits count.
    """
    found: list[list[tuple[float, float]]] = []
    for recording in known:
        logprobs = [recording.main_logprobs, *(recording.token_logprobs or ())][:N]
        whole = MethodInputs(
            similarity=rouge_l([recording.main_answer, *recording.samples[: N - 1]]),
            mean_logprobs=np.array([np.mean(tokens or 0.0) for tokens in logprobs]),
            metric=True,
        )
        u = WSNNE.uncertainty(WSNNE.compute(whole), N) or 0.0
        limits = [weighted_limits(whole, m) for m in range(FIRST, N)]
        found.append([*limits, (u, u)])
    return np.array(found)


def weighted_limits(whole: MethodInputs, members: int) -> tuple[float, float]:
    assert whole.mean_logprobs is not None  # noqa: S101 - the caller has set them
    part = replace(
        whole,
        similarity=whole.similarity[:members, :members],
        mean_logprobs=whole.mean_logprobs[:members],
    )
    ranges = [
        uncertainty_range(method, part, N - members) or (0.0, 1.0)
        for method in (SNNE, WSNNE)
    ]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def report_weighted(missed: MissedTargets) -> None:
    print("## The certificate (WSNNE of the answer and 9 samples, ROUGE-L)\n")
    print("| data | accepted | one by one | in rounds of 5, 8, 10; rounds |")
    print("|---|---|---|---|")
    ranges = weighted_ranges(recordings(WITH_LOGPROBS))
    for accept in (0.35, 0.50, 0.80):
        single, cells, other = certificate_cells(ranges, accept)
        mark = missed.expect(holds=other == 0, what=f"certificate of WSNNE, {accept}")
        print(f"| Qwen2.5-Coder-1.5B | {accept:.2f} | {single:.2f} | {cells} |{mark}")
    print()


def certificate_cells(ranges: FloatArray, accept: float) -> tuple[float, str, int]:
    """Return mean samples one by one, what rounds take, and other decisions."""
    single, _, other = certified(ranges, accept, range(FIRST, N + 1))
    members, rounds, more = certified(ranges, accept, (5, 8, 10))
    return single, f"{members:.2f}, {rounds:.2f}", other + more


def absent() -> list[str]:
    """Return the files that are not there, and say so."""
    needed = (*FILES.values(), WITH_LOGPROBS)
    missing = [name for name in needed if not (SHARED / "data" / name).is_file()]
    if missing:
        print(f"not measured: {', '.join(missing)} not found; set SNNE_GUARD_SHARED")
    return missing


def main() -> int:
    if absent():
        return 0
    missed = MissedTargets()
    report_certificate(missed)
    report_weighted(missed)
    return missed.status()


if __name__ == "__main__":
    sys.exit(main())
