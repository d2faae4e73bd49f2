"""The paper's tables: AUROC, AUARC and PRR of each of its methods on recordings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

import numpy as np

from benchmarks.paper.data_sets import DATA_SETS
from snne_guard.errors import InputError
from snne_guard.evaluation import Evaluation, Recording, evaluate, resolve_grader
from snne_guard.evaluation.ranking import TITLES
from snne_guard.similarity import CrossEncoder

__all__ = ["compare", "format_table", "paper_methods", "tables"]

_ON_WORDS = ("snne", "wsnne", "lex_sim")
_ON_CLUSTERS = ("kle_full", "se", "dse", "num_set")
_ON_GRAPHS = ("kle_heat", "kle_matern", "sum_eigv", "deg", "eccen")
_ON_ENTAILMENT = ("luq", "luq_pair")
_ON_TOKENS = ("sar", "sent_sar")
_WITHOUT_SIMILARITY = ("token_sar", "ne", "p_true", "eigen_score")


def paper_methods(
    *, nli: str | None = None, cross_encoder: str | None = None
) -> list[str]:
    """Return the paper's methods, each on the similarity that it has there.

    Args:
        nli: Name or folder of an NLI model. Without one, methods that count meanings
            run on equal texts, those on graphs on ROUGE-L, and LUQ does not run.
        cross_encoder: The same for SAR; without one SAR runs on ROUGE-L, and only on
            recordings that hold the importance of tokens.

    Example:
        >>> paper_methods()[:4]
        ['snne[rouge_l_paper]', 'wsnne[rouge_l_paper]', 'lex_sim[rouge_l_paper]',
        'kle_full[exact]']
    """
    words = "rouge_l_paper"
    on = {
        words: _ON_WORDS,
        f"nli:{nli}" if nli else "exact": _ON_CLUSTERS,
    }
    rows = [f"{method}[{name}]" for name, methods in on.items() for method in methods]
    rows += [f"{method}[{f'nli:{nli}' if nli else words}]" for method in _ON_GRAPHS]
    rows += [f"{method}[nli:{nli}]" for method in _ON_ENTAILMENT if nli]
    sar = f"cross_encoder:{cross_encoder}" if cross_encoder else words
    return [*rows, *(f"{method}[{sar}]" for method in _ON_TOKENS), *_WITHOUT_SIMILARITY]


def compare(
    rows: Sequence[Recording],
    *,
    methods: Sequence[str],
    grader: str | None = None,
    cross_encoder: str | None = None,
    **options: Any,  # noqa: ANN401 - those of evaluate
) -> Evaluation:
    """Rank methods as the paper does: on the samples alone, without the answer.

    Args:
        rows: Recordings of one data set.
        methods: As of ``evaluate``.
        grader: Name of a grader; None: the one of the paper for the data set, or the
            labels where the recordings are of none.
        cross_encoder: What tells SAR the importance of tokens.
        **options: Further ones of ``evaluate``.
    """
    names = {str(row.extra.get("dataset")) for row in rows}
    if grader is None and len(names) == 1 and names <= {*DATA_SETS}:
        grader = DATA_SETS[names.pop()].grader
    if grader is not None:
        rows = [replace(row, label=None) for row in rows]  # a label would go first
    if cross_encoder is not None:
        rows = list(_with_token_importance(rows, CrossEncoder(cross_encoder)))
    return evaluate(
        rows,
        methods=methods,
        include_answer=False,
        grader=None if grader is None else resolve_grader(grader),
        **{"resamples": 1, **options},
    )


def _with_token_importance(
    recordings: Iterable[Recording], model: CrossEncoder
) -> Iterator[Recording]:
    """Yield recordings with the importance of the tokens that ``record`` has kept."""
    for row in recordings:
        main, samples = row.extra.get("main_tokens"), row.extra.get("tokens")
        if not (isinstance(main, list) and isinstance(samples, list)):
            yield row
            continue
        texts = (main, *samples)
        weights = [one and model.token_importance(row.question, one) for one in texts]
        yield replace(row, extra={**row.extra, "token_importance": weights})


def tables(evaluations: Mapping[str, Evaluation]) -> Iterable[str]:
    """Yield what was ranked, then methods by metrics.

    Of several recordings there is a table for each metric, with their mean.
    """
    for name, ranking in evaluations.items():
        right = "" if ranking.accuracy is None else f", {ranking.accuracy:.1%} right"
        yield (
            f"{name}: {len(ranking.ids)} of {ranking.n_read} questions{right} by "
            f"{ranking.grader}, {ranking.n_samples} samples"
        )
        for row, why in ranking.skipped.items():
            yield f"  not ranked: {row}: {why}"
    figures = {
        title: {
            name: {row.name: row.metrics[metric].value for row in ranking.ranked}
            for name, ranking in evaluations.items()
            if metric in ranking.ranked[0].metrics
        }
        for metric, title in TITLES.items()
    }
    if len(evaluations) == 1:
        [name] = evaluations
        columns = {title: by[name] for title, by in figures.items() if by}
        yield "\n" + format_table(name, columns)
        return
    for title, by in figures.items():
        if by:
            yield "\n" + format_table(title, by, with_mean=len(by) > 1)


def format_table(
    title: str,
    columns: Mapping[str, Mapping[str, float]],
    *,
    with_mean: bool = False,
) -> str:
    """Return a table in Markdown, its rows as in the longest column.

    Args:
        title: Stands above the names of the rows.
        columns: By their names the figures of the rows; some may be missing.
        with_mean: Whether to add mean and standard deviation, of several columns.

    Example:
        >>> print(format_table("AUROC", {"a": {"snne": 0.8}, "b": {"snne": 0.7}}))
        | AUROC | a | b |
        |---|---|---|
        | snne | .800 | .700 |
    """
    if not columns:
        msg = "expected figures for a table, got none"
        raise InputError(msg)
    names = max(columns.values(), key=len)
    lines = [[title, *columns, *(["mean"] if with_mean else [])]]
    for name in names:
        values = [column.get(name, math.nan) for column in columns.values()]
        cells = [name, *map(_number, values)]
        if with_mean and not np.isfinite(values).all():
            cells.append("-")
        elif with_mean:
            cells.append(f"{_number(mean(values))} ± {_number(stdev(values))}")
        lines.append(cells)
    lines.insert(1, ["---"] * len(lines[0]))
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    rows[1] = rows[1].replace(" ", "")
    return "\n".join(rows)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.3f}")
