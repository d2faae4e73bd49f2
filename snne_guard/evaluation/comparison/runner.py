"""Recordings to an evaluation: every method over the same questions of each set."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from snne_guard._version import __version__
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.comparison.ablation import check_ablations
from snne_guard.evaluation.comparison.assemble import assemble
from snne_guard.evaluation.comparison.cache import SimilarityCache
from snne_guard.evaluation.comparison.fields import check_field
from snne_guard.evaluation.comparison.figures import Draws
from snne_guard.evaluation.comparison.files import each_once
from snne_guard.evaluation.comparison.measure import Provider
from snne_guard.evaluation.comparison.naming import told_apart
from snne_guard.evaluation.comparison.opening import Opening
from snne_guard.evaluation.comparison.plan import (
    Tools,
    names_in_brackets,
    plan_methods,
    relation_of,
)
from snne_guard.evaluation.comparison.prepare import Options, prepare
from snne_guard.evaluation.comparison.scan import scan
from snne_guard.evaluation.comparison.survey import OnProblem, survey
from snne_guard.evaluation.comparison.temperatures import Drawn, across_temperatures
from snne_guard.evaluation.grading.grade import Grader
from snne_guard.evaluation.grading.registry import resolve_grader
from snne_guard.evaluation.grading.user_grader import GradeFunction
from snne_guard.evaluation.labelling.kept import kept_labels
from snne_guard.evaluation.labelling.labels import Labels
from snne_guard.evaluation.results import EvaluatedSet, Evaluation
from snne_guard.scorers.bounds import check_tau
from snne_guard.scorers.relation import Relation
from snne_guard.types import Method, Similarity

__all__ = ["evaluate"]

StrPath = str | os.PathLike[str]

_USUAL = "content_f1"
"""What methods take by default that take no model."""


def evaluate(
    paths: StrPath | Iterable[StrPath],
    *,
    methods: str | Sequence[str | Method] = "all",
    similarity: str | Similarity | Sequence[str | Similarity] | None = None,
    models: Sequence[str | Similarity] = (),
    providers: Mapping[str, Provider] | None = None,
    include_answer: bool = True,
    tau: float = 1.0,
    samples: int | None = None,
    by: str | None = None,
    labels: StrPath | None = None,
    grader: str | Grader | GradeFunction | None = "label",
    second_grader: str | Grader | GradeFunction | None = None,
    labels_first: bool = True,
    ablate: Sequence[str] = (),
    cache: StrPath | None = None,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    strict: bool = False,
    on_problem: OnProblem | None = None,
    on_progress: Callable[[str, int, int], object] | None = None,
) -> Evaluation:
    r"""Rank the questions of recordings by every method, and say how well each does.

    Every file, and within it every ``answer_protocol``, is a set of its own; figures
    of different sets are never pooled. Each file is read twice, and the few questions
    that are shown a third time; nothing but numbers is kept of a question.

    Args:
        paths: Files of recordings; one that is named again counts once.
        methods: ``"all"`` (``METHODS``), ``"readings"`` (``READINGS``), names with
            commas between them, or names and methods of your own. ``"dse"`` is the
            method on every relation at hand, ``"dse[exact]"`` on that one;
            ``"module:object"`` is one of your own, and in brackets a similarity of your
            own.
        similarity: What compares answers word by word; one or several. None for
            ``"rouge_l"``, and for SNNE and its like what they take by default beside
            it.
        models: Similarities behind which a model is: ``"nli:MODEL"``,
            ``"embedding:MODEL"`` or objects.
        providers: What meets a need that recordings do not, under its name:
            ``hidden_states``, ``token_importance``, ``p_true_logprob``.
        include_answer: Whether the delivered answer is a member of the scored set, as
            in a guard; False scores the samples alone, as the paper does.
        tau: Temperature of the similarity's softmax, above 0.
        samples: Samples of each question that count; None for the number that keeps
            most samples, questions with fewer being left out, but not more than half.
        by: A field of the recordings, or of their settings, by which files are split
            further.
        labels: Where the labels are that people gave to the only file (``snne-guard
            label``); None for beside each. They go before a recording's own.
        grader: Says which delivered answers are right where they have no label.
        second_grader: Another one, which sees no labels; how often the two agree is
            told. Worth having where the first looks at the same words as a similarity.
        labels_first: Whether a recording's own label goes before the grader. Without,
            PRR of answers that are better or worse, not right or wrong, takes the
            grader's quality, as the paper does for summaries and translations.
        ablate: What to vary: ``"tau"`` (0.1, 1, 10, 100), ``"similarity"``,
            ``"samples"`` (from two answers on), ``"temperature"`` (where a set was
            drawn at several, or the same questions in several files), or ``"all"``.
        cache: A folder for what ``models`` say, so that the next run need not ask them
            again; it holds digests and numbers, no text. None for none.
        draws: Bootstrap draws of the questions.
        level: Share of the draws within an interval.
        seed: Of the draws.
        strict: Whether the first bad line ends the run.
        on_problem: Told the file, the line and what is wrong with it; bad lines are
            skipped.
        on_progress: Told what is done, how far, and of how many.

    Returns:
        The evaluation; a method that could not run says why.

    Raises:
        ConfigurationError: A method, a relation or a number makes no sense, no
            recording has the field ``by``, or labels are named for several files.
        MissingExtraError: A model that is named cannot be loaded.
        InputError: With ``strict``, at the first bad line; a file is no file that
            can be read twice; or a line of the labels is none.
        OSError: A file cannot be read.

    Example:
        >>> import json, pathlib, tempfile
        >>> rows = [
        ...     {"id": 1, "question": "?", "main_answer": "a", "samples": ["a", "a"]},
        ...     {"id": 2, "question": "?", "main_answer": "b", "samples": ["c", "d"]},
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "few.jsonl"
        ...     lines = [json.dumps({**row, "label": row["id"] % 2}) for row in rows]
        ...     _ = path.write_text("\n".join(lines))
        ...     found = evaluate(path, methods="snne", draws=10)
        >>> found.sets[0].methods[0].name, found.sets[0].methods[0].auroc.value
        ('snne[content_f1]', 1.0)
    """
    check_tau(tau)
    if samples is not None and samples < 1:
        msg = f"expected samples of at least 1, got {samples}"
        raise ConfigurationError(msg)
    options = Options(
        methods=methods,
        graded=tuple(_relation(one) for one in _several(similarity)),
        usual=() if similarity is not None else (_relation(_USUAL),),
        models=tuple(_relation(one) for one in models),
        providers=providers or {},
        include_answer=include_answer,
        tau=tau,
        samples=samples,
        by=by,
        grader=resolve_grader(grader, labels_first=labels_first),
        second_grader=None
        if second_grader is None
        else resolve_grader(second_grader, labels_first=False),
        ablate=check_ablations(ablate),
        draws=Draws(draws=draws, level=level, seed=seed),
        strict=strict,
        on_problem=on_problem,
        on_progress=on_progress,
    )
    # Before a line is read.
    plan_methods(methods, Tools(graded=options.graded, usual=options.usual, equal=()))
    files = each_once([paths] if isinstance(paths, str | os.PathLike) else paths)
    said = kept_labels(files, labels)
    if by is not None:
        check_field(files, by)
    with ExitStack() as stack:
        store = None
        if cache is not None:
            store = stack.enter_context(SimilarityCache(os.fspath(cache)))
        opening = Opening(store)
        options = replace(
            options,
            models=tuple(map(opening.model, models)),
            graded=tuple(map(opening.other, _several(similarity))),
            usual=() if similarity is not None else (opening.other(_USUAL),),
            named={one: opening.other(one) for one in names_in_brackets(methods)},
        )
        found = [
            one
            for path, kept in zip(files, said, strict=True)
            for one in _evaluated(path, kept, options)
        ]
    sets = [one for one, _ in found]
    if "temperature" in options.ablate:
        sets = across_temperatures(found)
    return Evaluation(
        sets=told_apart(sets),
        settings=_settings(options, sets),
        draws=draws,
        level=level,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )


def _evaluated(
    path: StrPath, labels: Labels, options: Options
) -> Iterator[tuple[EvaluatedSet, Drawn]]:
    parts = survey(
        path,
        grader=options.grader,
        labels=labels,
        second=options.second_grader,
        by=options.by,
        strict=options.strict,
        on_problem=options.on_problem,
    )
    scans = [prepare(part, options) for part in parts]
    total = sum(len(one.rows) for one in scans)

    def on_progress(done: int) -> None:
        if options.on_progress is not None:
            options.on_progress(os.fspath(path), done, total)

    scan(
        path,
        scans,
        include_answer=options.include_answer,
        providers=options.providers,
        on_progress=on_progress,
    )
    for one in scans:
        assembled = assemble(path, one, options)
        yield assembled, Drawn.of(one.part, one.rows, assembled.ids)


def _several(
    similarity: str | Similarity | Sequence[str | Similarity] | None,
) -> Sequence[str | Similarity]:
    if similarity is None:
        return ["rouge_l"]
    if isinstance(similarity, str) or callable(similarity):
        return [similarity]
    return similarity


def _relation(similarity: str | Similarity) -> Relation:
    return (
        relation_of(similarity)
        if isinstance(similarity, str)
        else Relation.of(similarity)
    )


def _settings(options: Options, sets: Sequence[EvaluatedSet]) -> dict[str, Any]:
    methods = options.methods
    named = methods if isinstance(methods, str) else [_name(one) for one in methods]
    return {
        "methods": named,
        "similarity": _compared_by(sets),
        "models": [one.name for one in options.models],
        "include_answer": options.include_answer,
        "tau": options.tau,
        "samples": options.samples,
        "by": options.by,
        "grader": options.grader.name,
        "second_grader": options.second_grader and options.second_grader.name,
        "ablate": sorted(options.ablate),
        "seed": options.draws.seed,
    }


def _compared_by(sets: Sequence[EvaluatedSet]) -> list[str]:
    """Return what compared the answers for any of the rows, models among them."""
    rows = (row for one in sets for row in one.methods if row.status == "evaluated")
    return sorted({row.similarity for row in rows if row.similarity is not None})


def _name(method: str | Method) -> str:
    return method if isinstance(method, str) else method.name
