"""From numbers in columns to what is reported of a set."""

from __future__ import annotations

import os
from dataclasses import replace

from snne_guard.evaluation.comparison.ablation import ablations, missing
from snne_guard.evaluation.comparison.cautions import warnings_of
from snne_guard.evaluation.comparison.figures import rank_correlation
from snne_guard.evaluation.comparison.hardest import hardest_questions
from snne_guard.evaluation.comparison.pictures import (
    calibration,
    risk_coverage,
    roc,
)
from snne_guard.evaluation.comparison.prepare import Options
from snne_guard.evaluation.comparison.ranking import ranked
from snne_guard.evaluation.comparison.rows import results
from snne_guard.evaluation.comparison.scan import Scan
from snne_guard.evaluation.comparison.standing import Standing
from snne_guard.evaluation.comparison.yardstick import Yardstick
from snne_guard.evaluation.grading.agreement import agreement
from snne_guard.evaluation.results import AgreementOfGraders, EvaluatedSet
from snne_guard.types import IntArray

__all__ = ["assemble"]


def assemble(
    path: str | os.PathLike[str], scan: Scan, options: Options, /
) -> EvaluatedSet:
    """Return what is reported of a set.

    Raises:
        InputError: The file has changed.
        OSError: It cannot be read again.
    """
    part, found = scan.part, ranked(scan.strips[0].columns)
    standing = Standing.of(scan, found)
    if lost := len(scan.rows) - len(standing.rows):
        part.left_out["not scored by every ranked method"] += lost
        costs = ", ".join(f"{name} {n}" for name, n in found.lost.items())
        part.notes.append(f"questions that ranked methods could not score: {costs}")
    plain = EvaluatedSet(
        name=part.name,
        path=os.fspath(path),
        protocol=part.protocol,
        grader=_graders(standing) or options.grader.name,
        agreement=_agreement(standing, options),
        include_answer=options.include_answer,
        n_samples=scan.n_samples,
        n_read=part.n_read,
        left_out=dict(part.left_out),
        warnings=tuple(
            warnings_of(
                part,
                standing,
                grader=options.grader,
                plan=scan.strips[0].columns.plan,
            )
        ),
        methods=results(scan, found, standing, options),
        ids=tuple(row.id for row in standing.rows),
        quality=tuple(standing.quality.tolist()),
        answer_length=tuple(standing.answer_length.tolist()),
    )
    plain = _clustered(plain, scan, standing, options)
    correct = standing.correct
    if not standing.uncertainties or not standing.rows:
        return plain
    varied, by_samples = ablations(scan, standing, found.questions, options.ablate)
    told = (*plain.warnings, *missing(scan, varied, options.ablate))
    plain = replace(plain, ablations=varied, warnings=told)
    if correct is None:
        return plain
    judged = _judged(plain, standing, correct)
    first = next(iter(standing.uncertainties))
    return replace(
        judged,
        auroc_by_samples=by_samples,
        hardest=hardest_questions(
            path,
            standing.rows,
            uncertainty=standing.uncertainties[first],
            correct=correct,
            n_samples=scan.n_samples,
        ),
        hardest_by=first,
    )


def _clustered(
    plain: EvaluatedSet, scan: Scan, standing: Standing, options: Options
) -> EvaluatedSet:
    """Add the groups of equal answers, where they are known of every question."""
    counts = standing.n_clusters
    if counts is None:
        return plain
    return replace(
        plain,
        n_clusters=tuple(counts.tolist()),
        clusters_by=scan.clusters.name,
        length_clusters_rho=rank_correlation(
            standing.mean_length, counts, options.draws
        ),
    )


def _judged(plain: EvaluatedSet, standing: Standing, correct: IntArray) -> EvaluatedSet:
    """Add the share of right answers, and every curve that needs right and wrong."""
    judged = replace(
        plain, accuracy=float(correct.mean()), correct=tuple(correct.tolist())
    )
    if judged.accuracy in {0.0, 1.0}:
        return judged
    each = [(name, one, correct) for name, one in standing.uncertainties.items()]
    counts, by = standing.n_clusters, Yardstick.of(standing)
    return replace(
        judged,
        roc=tuple(roc(*one) for one in each),
        risk_coverage=tuple(risk_coverage(*one) for one in each),
        auroc_by_clusters=()
        if counts is None
        else tuple(
            by.within(name, one, counts) for name, one in standing.uncertainties.items()
        ),
        reliability=tuple(
            calibration(name, standing.probability_wrong(name), correct)
            for name in standing.uncertainties
        ),
    )


def _graders(standing: Standing) -> str:
    """Return who gave the grades that count."""
    named = (row.grade.grader for row in standing.rows if row.grade is not None)
    return " and ".join(dict.fromkeys(named))


def _agreement(standing: Standing, options: Options) -> AgreementOfGraders | None:
    if options.second_grader is None:
        return None
    grades = [row.grade for row in standing.rows]
    return agreement(grades, [row.second for row in standing.rows])
