"""An evaluation as a run might find it, made from a seed: what a report is tried on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from snne_guard.evaluation.results import (
    AgreementOfGraders,
    Curve,
    EvaluatedSet,
    Evaluation,
    HardQuestion,
    MethodResult,
    Metric,
)

__all__ = ["METHODS", "evaluated_set", "evaluation", "hard_question", "result"]

METHODS = {
    "wsnne[rouge_l]": 1.35,
    "snne[rouge_l]": 1.3,
    "lex_sim[rouge_l]": 1.25,
    "luq[rouge_l]": 1.1,
    "dse[exact]": 1.0,
    "mean_sequence_probability": 0.9,
    "answer_length": 0.7,
    "num_set[exact]": 0.6,
    "perplexity": 0.3,
}
"""The methods, and how far apart their values are for right and wrong answers."""
WHITE = frozenset({"wsnne", "mean_sequence_probability", "perplexity"})
GROUPS = 6


def metric(value: float, width: float = 0.04) -> Metric:
    return Metric(value=value, low=value - width, high=value + width)


def auroc(values: np.ndarray, correct: np.ndarray) -> float:
    right, wrong = values[correct == 1], values[correct == 0]
    above = (wrong[:, None] > right).mean()
    return float(above + (wrong[:, None] == right).mean() / 2)


def result(
    name: str, values: Sequence[float], correct: Sequence[int], *, first: float
) -> MethodResult:
    """Return what a method that was evaluated might have come to."""
    method = name.split("[", maxsplit=1)[0]
    area = auroc(np.asarray(values), np.asarray(correct))
    return MethodResult(
        name=name,
        method=method,
        similarity=name[len(method) + 1 : -1] or None,
        white_box=method in WHITE,
        source="Nguyen et al. 2025, eq. 4",
        calls=11.0,
        milliseconds=0.42,
        auroc=metric(area),
        auarc=metric(0.3 + area / 2, 0.03),
        prr=metric(area - 0.4),
        prr_normalised=metric(2 * area - 1.1),
        aupr=metric(area - 0.1),
        e_aurc=metric(0.9 - area),
        auroc_by_length=tuple(metric(area - by, 0.08) for by in (0.02, 0.05, 0.09)),
        against_first=None if area == first else metric(area - first),
        ece=0.051,
        brier=0.187,
        uncertainty=tuple(values),
    )


def hard_question(at: int, *, correct: bool) -> HardQuestion:
    """Return a question on which score and truth disagree."""
    return HardQuestion(
        id=f"q{at}",
        question=f"Which river flows through the town of number {at}?",
        answer="The Danube",
        samples=("The Danube", "The Danube", "the Danube", "The Inn", ""),
        references=("Inn", "River Inn") if not correct else ("Danube",),
        correct=correct,
        uncertainty=-2.1 + at / 7,
        rank=0.03 if not correct else 0.97,
    )


def evaluated_set(
    name: str = "trivia", *, n: int = 240, methods: Sequence[str] = tuple(METHODS)
) -> EvaluatedSet:
    """Return a set with all that a set can have."""
    rng = np.random.default_rng(5)
    correct = (rng.random(n) < 0.42).astype(int)
    drawn = {
        method: rng.normal(size=n) - METHODS.get(method, 0.4) * correct
        for method in methods
    }
    ranked = sorted(methods, key=lambda each: -auroc(drawn[each], correct))
    first = auroc(drawn[ranked[0]], correct)
    results = [
        result(each, drawn[each].tolist(), correct.tolist(), first=first)
        for each in ranked
    ]
    return EvaluatedSet(
        name=name,
        path=f"recordings/{name}.jsonl",
        protocol="near greedy",
        grader="squad_f1",
        agreement=AgreementOfGraders(
            first="squad_f1", second="exact_match", n=n, share=0.912, kappa=0.81
        ),
        n_samples=10,
        n_read=n + 9,
        left_out={"unequal numbers of samples": 7, "no label": 2},
        accuracy=float(correct.mean()),
        warnings=("Label and score look at the same tokens.",),
        methods=(
            *results,
            *(
                MethodResult(
                    name=f"{method}[nli]",
                    method=method,
                    similarity="nli",
                    status="formula_verified",
                    why="the weights of the NLI model could not be had",
                )
                for method in ("se", "luq")
            ),
            MethodResult(
                name="eigen_score",
                method="eigen_score",
                white_box=True,
                status="skipped",
                why="the recording has no hidden states",
            ),
        ),
        ids=tuple(f"q{at}" for at in range(n)),
        correct=tuple(correct.tolist()),
        quality=tuple(correct.astype(float).tolist()),
        answer_length=tuple(rng.integers(1, 30, n).tolist()),
        n_clusters=tuple(rng.integers(1, GROUPS, n).tolist()),
        clusters_by="exact",
        roc=tuple(_roc(each, drawn[each], correct) for each in ranked),
        risk_coverage=tuple(_risk(each, drawn[each], correct) for each in ranked),
        auroc_by_samples=tuple(
            _by_samples(each, drawn[each], correct) for each in ranked
        ),
        auroc_by_clusters=tuple(
            _by_clusters(each, at) for at, each in enumerate(ranked)
        ),
        reliability=tuple(_reliability(each) for each in ranked),
        hardest=tuple(hard_question(at, correct=at % 2 == 0) for at in range(20)),
        hardest_by="snne[rouge_l]",
        length_clusters_rho=metric(0.41),
        ablations={
            "tau": tuple(_by_tau(each, at) for at, each in enumerate(ranked[:2])),
            "similarity": tuple(
                Curve(
                    label=f"snne[{each}]",
                    x=(0.0,),
                    y=(y,),
                    low=(y - 0.05,),
                    high=(y + 0.05,),
                )
                for each, y in (("exact", 0.74), ("rouge_l", 0.81))
            ),
        },
    )


def evaluation(*sets: EvaluatedSet) -> Evaluation:
    """Return an evaluation of these sets, or of two."""
    return Evaluation(
        sets=sets or (evaluated_set(), evaluated_set("arithmetic", n=90)),
        settings={"methods": "all", "include_answer": True, "seed": 0},
        created="2026-11-21T20:15:00+00:00",
        version="0.1.0",
    )


def _roc(label: str, values: np.ndarray, correct: np.ndarray) -> Curve:
    wrong = 1 - correct[np.argsort(-values)]
    found = np.concatenate([[0.0], wrong.cumsum() / wrong.sum()])
    paid = np.concatenate([[0.0], (1 - wrong).cumsum() / (1 - wrong).sum()])
    return Curve(label=label, x=tuple(paid.tolist()), y=tuple(found.tolist()))


def _risk(label: str, values: np.ndarray, correct: np.ndarray) -> Curve:
    wrong = 1 - correct[np.argsort(values)]
    kept = np.arange(1, len(wrong) + 1)
    return Curve(
        label=label,
        x=tuple((kept / len(wrong)).tolist()),
        y=tuple((wrong.cumsum() / kept).tolist()),
    )


def _by_samples(label: str, values: np.ndarray, correct: np.ndarray) -> Curve:
    places = (2, 3, 5, 8, 11)
    area = auroc(values, correct)
    y = tuple(area - 0.15 / place for place in places)
    return _curve(label, places, y, width=0.05)


def _by_clusters(label: str, at: int) -> Curve:
    y = (None, 0.71 - at / 50, 0.66, 0.58 + at / 60, 0.55, None)
    low = tuple(None if each is None else each - 0.08 for each in y)
    high = tuple(None if each is None else each + 0.08 for each in y)
    return Curve(
        label=label,
        x=tuple(float(each) for each in range(1, 7)),
        y=y,
        low=low,
        high=high,
        counts=(81, 60, 44, 30, 20, 5),
    )


def _by_tau(label: str, at: int) -> Curve:
    places = (0.1, 1.0, 10.0, 100.0)
    return _curve(
        label, places, tuple(0.8 - abs(place - 1) / 900 - at / 30 for place in places)
    )


def _reliability(label: str) -> Curve:
    places = tuple(at / 10 + 0.05 for at in range(10))
    return Curve(
        label=label,
        x=places,
        y=tuple(min(1.0, place**1.2 + 0.03) for place in places),
        low=tuple(max(0.0, place**1.2 - 0.05) for place in places),
        high=tuple(min(1.0, place**1.2 + 0.11) for place in places),
        counts=(9, 18, 25, 31, 40, 37, 30, 22, 18, 10),
    )


def _curve(
    label: str, x: Sequence[float], y: Sequence[float], *, width: float = 0.03
) -> Curve:
    return Curve(
        label=label,
        x=tuple(float(each) for each in x),
        y=tuple(y),
        low=tuple(each - width for each in y),
        high=tuple(each + width for each in y),
    )
