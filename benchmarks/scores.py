"""Scores beside the paper's on recorded answers of real models, set by set.

Each score says how uncertain the delivered answer of a question is; AUROC says how well
it ranks wrong answers above right ones, within one set of questions. Sets are kept
apart by how the answer came about, the delivered answer is never among the samples, and
the gain over the paper's score is that of the same questions, drawn again 2,000 times
within each set. Questions are in two halves by a hash of their id: variants were chosen
on one (`even`) and looked at on the other (`odd`) once, at the end.

    python -m benchmarks.scores [--half even|odd|all] [--recording FILE ...]
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from benchmarks import certificate
from snne_guard import score
from snne_guard.evaluation import (
    LabelsFirst,
    Recording,
    auroc,
    grade_all,
    read_recordings,
    resolve_grader,
)
from snne_guard.scorers import METHODS, anchored_snne, snne
from snne_guard.similarity import content_f1, rouge_l

Array = NDArray[np.float64]
Score = Callable[[Recording], float]

DRAWS = 2000
FEW = 4  # samples beside the answer: five calls
NEAR_GREEDY = ("nq", "hotpot", "qwen svamp", "qwen triviaqa", "qwen squad_ctx")
DRAWN = ("triviaqa", "wikibio", "gsm8k")
# As they were named before the scores were made. Of the other sets of Qwen three have
# fewer than ten right answers, and translations are in the tables alone.
GROUPS: Mapping[str, Sequence[str]] = {
    "near greedy": NEAR_GREEDY,
    "drawn, or another model's": DRAWN,
}
FILES: Mapping[str, str] = {
    "nq": "generations_sac3_nq.jsonl",
    "hotpot": "generations_sac3_hotpot.jsonl",
    "triviaqa": "generations_uqnlg_triviaqa.jsonl",
    "wikibio": "generations_wikibio119_gpt35.jsonl",
    "gsm8k": "generations_gsm8k_4systems.jsonl",
}
QWEN = "recorded_qwen15.jsonl"
SAMPLES = 10  # as many calls as the paper's, and the answer


def samples(one: Recording) -> list[str]:
    """Return the texts of the samples."""
    return list(one.samples[:SAMPLES])


def paper(one: Recording) -> float:
    """SNNE of the samples, by ROUGE-L with rouge-score's tokens, tau 1."""
    found = score(samples(one), include_answer=False, similarity="rouge_l_paper")
    return found.value


def length(one: Recording) -> float:
    """Return the mean number of words of the answers, which knows nothing of them."""
    return float(np.mean([len(text.split()) for text in samples(one)]))


def answers(one: Recording) -> list[str]:
    """Return the delivered answer and the samples."""
    return [one.main_answer, *samples(one)]


def with_answer(one: Recording) -> float:
    """SNNE of the answer and the samples, by ROUGE-L."""
    return snne(rouge_l(answers(one)))


@cache
def alike(texts: tuple[str, ...], question: str) -> Array:
    """Return the content F1 of answers to a question, which many scores ask for."""
    return content_f1(texts, question=question)


def content(one: Recording) -> float:
    """SNNE of the answer and the samples, by content F1."""
    return snne(alike(tuple(answers(one)), one.question))


def anchored(one: Recording) -> float:
    """Anchored SNNE, by content F1."""
    return anchored_snne(alike(tuple(answers(one)), one.question)[0, 1:])


def mixed(one: Recording) -> float:
    """Return the mean of u of the default's SNNE and of anchored SNNE."""
    found = score(
        answers(one),
        question=one.question,
        method="snne+anchored_snne",
        similarity="content_f1",
    )
    return found.value


def default(one: Recording) -> float:
    """Return what `score` gives by default."""
    return score(answers(one), question=one.question).value


def few(start: int) -> Score:
    """Return the default with the answer and four samples, NaN without them."""

    def run(one: Recording) -> float:
        texts = [one.main_answer, *samples(one)[start : start + FEW]]
        if len(texts) <= FEW:
            return math.nan
        return score(texts, question=one.question).value

    return run


def white(method: str) -> Score:
    """Return a method that looks at log-probabilities, by content F1."""

    def run(one: Recording) -> float:
        logprobs = [one.main_logprobs, *(one.token_logprobs or ())][: SAMPLES + 1]
        found = score(
            answers(one),
            question=one.question,
            token_logprobs=logprobs,
            method=method,
            similarity="content_f1" if method in METHODS else None,
        )
        return found.value

    return run


PAPER = "the paper: SNNE of the samples, ROUGE-L"
MIXED = "snne+anchored_snne: mean of u, content F1"
DEFAULT = "default: SNNE, content F1, 0.7 anchored"
FIVE = ("default, five calls: the first samples", "default, five calls: the next ones")
SCORES: Mapping[str, Score] = {
    PAPER: paper,
    "mean length of the samples": length,
    "SNNE, answer in the set, ROUGE-L": with_answer,
    "SNNE, answer in the set, content F1": content,
    "anchored SNNE, content F1": anchored,
    MIXED: mixed,
    DEFAULT: default,
    FIVE[0]: few(0),
    FIVE[1]: few(FEW),
}
WHITE_BOX: Mapping[str, Score] = {
    "default: WSNNE, content F1, 0.7 anchored": white("auto"),
    "anchored WSNNE, content F1": white("anchored_wsnne"),
    "answer's own probability": white("sequence_probability"),
}


def half_of(one: Recording) -> str:
    """Return which half of the questions one belongs to."""
    digest = hashlib.sha1(one.id.encode(), usedforsecurity=False).digest()
    return "odd" if digest[-1] % 2 else "even"


def read(path: Path) -> list[Recording]:
    """Return the recordings of a file, labels as they are, else by SQuAD F1."""
    found = [one for _, one in read_recordings(path) if isinstance(one, Recording)]
    grades = grade_all(found, LabelsFirst(resolve_grader("squad_f1")))
    return [
        replace(one, label=grade.correct)
        for one, grade in zip(found, grades, strict=True)
        if grade is not None and grade.correct is not None
    ]


def shared() -> dict[str, list[Recording]]:
    """Return the sets of the shared folder, which SNNE_GUARD_SHARED may name."""
    folder = certificate.SHARED / "data"
    paths = {name: folder / file for name, file in FILES.items()}
    found = {name: read(path) for name, path in paths.items() if path.exists()}
    if (folder / QWEN).exists():
        for one in read(folder / QWEN):
            found.setdefault(f"qwen {one.extra['dataset']}", []).append(one)
    return found


class Table:
    """The value of every score for every question of some sets.

    Args:
        sets: The recordings by the name of their set.
        scores: The scores by name.
    """

    def __init__(
        self, sets: Mapping[str, Sequence[Recording]], scores: Mapping[str, Score]
    ) -> None:
        self.sets = sets
        self.right = {
            name: np.array([one.label for one in rows]) for name, rows in sets.items()
        }
        self.values = {
            (score, name): np.array([run(one) for one in rows])
            for score, run in scores.items()
            for name, rows in sets.items()
        }
        self._gains: dict[tuple[str, str], Array] = {}

    def auroc(self, score: str, name: str) -> float:
        """Return the AUROC of a score on a set, NaN where it has none."""
        values = self.values[score, name]
        return math.nan if np.isnan(values).any() else auroc(values, self.right[name])

    def has(self, scores: Sequence[str], name: str) -> bool:
        """Return whether all scores have values on a set."""
        return not any(np.isnan(self.values[one, name]).any() for one in scores)

    def in_thirds(self, score: str, name: str) -> float:
        """Return the mean AUROC within thirds of the answers' length."""
        rows = self.sets[name]
        order = np.argsort(
            [len(one.main_answer.split()) for one in rows], kind="stable"
        )
        parts = [
            auroc(self.values[score, name][part], self.right[name][part])
            for part in np.array_split(order, 3)
            if len(set(self.right[name][part].tolist())) == 2  # noqa: PLR2004 - both
        ]
        return float(np.mean(parts))

    def draws(self, score: str, name: str) -> Array:
        """Return the AUROC of a score on resampled questions of a set."""
        key = (score, name)
        if key not in self._gains:
            wrong = self.right[name] == 0
            values = self.values[key]
            over = values[wrong][:, None] - values[~wrong][None, :]
            beats = (over > 0) + 0.5 * (over == 0)
            times = resampled(len(values), name)
            left, right = times[:, wrong], times[:, ~wrong]
            pairs = left.sum(axis=1) * right.sum(axis=1)
            won = ((left @ beats) * right).sum(axis=1)
            self._gains[key] = won / np.maximum(pairs, 1)
        return self._gains[key]

    def gain(
        self, score: str | Sequence[str], names: Sequence[str], *, over: str = PAPER
    ) -> str:
        """Return the mean gain over another on some sets, with its interval."""
        scores = [score] if isinstance(score, str) else score
        names = self.names(scores, names)
        points, drawn = [], []
        for name in names:
            mean = np.mean([self.auroc(one, name) for one in scores])
            points.append(float(mean) - self.auroc(over, name))
            all_draws = np.mean([self.draws(one, name) for one in scores], axis=0)
            drawn.append(all_draws - self.draws(over, name))
        low, high = np.quantile(np.mean(drawn, axis=0), [0.05, 0.95])
        return f"{np.mean(points):+.3f} [{low:+.3f}, {high:+.3f}]"

    def names(self, scores: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return the sets on which all of the scores have values."""
        return [name for name in names if self.has(scores, name)]


@cache
def resampled(n: int, name: str) -> Array:
    """Return how often each of n questions is drawn, the same for every score."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    chosen = np.random.default_rng(seed).integers(0, n, (DRAWS, n))
    counts = np.zeros((DRAWS, n))
    np.add.at(counts, (np.arange(DRAWS)[:, None], chosen), 1)
    return counts


def show(table: Table, scores: Sequence[str]) -> None:
    """Print the AUROC of each score on each set."""
    names = list(table.sets)
    right = {name: int(table.right[name].sum()) for name in names}
    heads = [
        f"{one} ({right[one]}, {len(table.sets[one]) - right[one]})" for one in names
    ]
    print("| score | " + " | ".join(heads) + " |")
    print("|---" * (len(names) + 1) + "|")
    for one in scores:
        cells = [f"{table.auroc(one, name):.3f}" for name in names]
        cells = ["" if cell == "nan" else cell for cell in cells]
        print(f"| {one} | " + " | ".join(cells) + " |")
    print()


def show_gains(
    table: Table,
    groups: Mapping[str, Sequence[str]],
    *,
    scores: Sequence[str] = tuple(SCORES),
    defaults: Mapping[str, Sequence[str]] = MappingProxyType({DEFAULT: FIVE}),
) -> None:
    """Print the gain of each score over the paper, and within thirds of length.

    Args:
        table: What the scores gave.
        groups: Sets of which the mean is taken, by what to call them.
        scores: Whose gain is printed, the paper's left out.
        defaults: Defaults of which there are two of five calls, and the names of these.
    """
    for group, names in groups.items():
        print(f"{group}: gain over the paper, 5 to 95 %")
        for one in scores:
            if one != PAPER:
                print(line_of(table, [one], names, one))
        for default, five in defaults.items():
            name, among = default.partition(":")[0], table.names(five, names)
            print(line_of(table, five, names, f"{name}, five calls: mean of the two"))
            if len(among) < len(names):
                told = f"the {name} on {', '.join(among)}"
                print(line_of(table, [default], among, told))
        print()


def line_of(
    table: Table, scores: Sequence[str], names: Sequence[str], label: str
) -> str:
    """Return the gain of the mean of some scores on those sets which have them."""
    among = table.names(scores, names)
    thirds = [
        np.mean([table.in_thirds(one, name) for one in scores])
        - table.in_thirds(PAPER, name)
        for name in among
    ]
    gain = table.gain(scores, among)
    return f"  {gain}  thirds {np.mean(thirds):+.3f}  {len(among)} sets  {label}"


def main() -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["even", "odd", "all"], default="all")
    parser.add_argument("--recording", type=Path, action="append", default=[])
    options = parser.parse_args()
    sets = {path.stem: read(path) for path in options.recording} or shared()
    if options.half != "all":
        sets = {
            name: [one for one in rows if half_of(one) == options.half]
            for name, rows in sets.items()
        }
    sets = {
        name: rows for name, rows in sets.items() if len({r.label for r in rows}) > 1
    }
    if not sets:
        print("no recordings: SNNE_GUARD_SHARED names no folder with data")
        return 0
    print(
        f"{options.half} questions; AUROC of wrong answers; in brackets right, wrong\n"
    )
    table = Table(sets, SCORES)
    show(table, list(SCORES))
    groups = {
        f"{name} ({', '.join(one for one in of if one in sets)})": [
            one for one in of if one in sets
        ]
        for name, of in GROUPS.items()
    }
    show_gains(table, {"all": list(sets)} if options.recording else groups)
    weighed = {
        name: rows for name, rows in sets.items() if all(r.main_logprobs for r in rows)
    }
    if weighed:
        both = {PAPER: paper, DEFAULT: default, **WHITE_BOX}
        show(Table(weighed, both), list(both))
    return 0


if __name__ == "__main__":
    sys.exit(main())
