"""AUROC on recordings of real models, computed once more without the library."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sklearn.metrics import roc_auc_score

from snne_guard.evaluation.comparison.runner import evaluate
from tests.support.evaluating import by_name
from tests.support.shared_folder import SHARED

FILES = ("generations_gsm8k_4systems.jsonl", "recorded_qwen15.jsonl")


@pytest.mark.parametrize("name", FILES)
def test_aurocs_equal_an_independent_computation(name: str) -> None:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is not there")

    found = evaluate(
        path,
        methods="snne,dse[exact],lex_sim",
        similarity="rouge_l_paper",
        include_answer=False,
        draws=1,
    )

    (one,) = found.sets
    expected = _independent(path)
    for method, value in expected.items():
        auroc = by_name(one)[method].auroc
        assert auroc is not None
        assert auroc.value == pytest.approx(value, abs=1e-9)


def _independent(path: Path) -> dict[str, float]:
    """Return the AUROCs by rouge-score, numpy and scikit-learn alone."""
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    wrong = [1 - row["label"] for row in rows]
    values = np.array([_uncertainties(row["samples"]) for row in rows])
    names = ("snne[rouge_l_paper]", "dse[exact]", "lex_sim[rouge_l_paper]")
    return {
        name: float(roc_auc_score(wrong, np.round(values[:, place], 9)))
        for place, name in enumerate(names)
    }


_SCORER: Any = RougeScorer(["rougeL"])


@cache  # samples repeat
def _rouge_l(one: str, other: str) -> float:
    return float(_SCORER.score(one, other)["rougeL"].fmeasure)


def _uncertainties(texts: list[str]) -> tuple[float, float, float]:
    n = len(texts)
    f = np.eye(n)
    for i in range(n):
        for j in range(i):
            f[i, j] = f[j, i] = _rouge_l(texts[i], texts[j])
    snne = -np.log(np.exp(f).sum(axis=1)).mean()
    shares = [count / n for count in Counter(text.strip() for text in texts).values()]
    dse = -sum(share * math.log(share) for share in shares)
    lex_sim = -f[np.triu_indices(n, 1)].mean()
    return float(snne), dse, float(lex_sim)
