"""``snne-guard evaluate``: which method finds the wrong answers of recordings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text
from typer import Option

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, lines_in, progress, write
from snne_guard.cli.limits import limits_of, write_junit
from snne_guard.cli.models import named_grader
from snne_guard.errors import InputError
from snne_guard.evaluation import Evaluation, read_labelled, read_recordings
from snne_guard.evaluation.accepting import in_words
from snne_guard.evaluation.conclusions import skipped_by_reason
from snne_guard.evaluation.jsonl import beside
from snne_guard.evaluation.ranking import BASELINE, TITLES
from snne_guard.evaluation.ranking import evaluate as evaluate_recordings
from snne_guard.evaluation.recipes import RecipeComparison
from snne_guard.evaluation.recorded_calls import OtherRecording
from snne_guard.evaluation.report import html_report
from snne_guard.text import printable

_WIDE = 130
_MISSED = 1
"""Exit status where a limit is not kept."""


def evaluate(
    files: options.Recordings,
    *,
    methods: Annotated[
        str, Option(help="all, or names separated by commas, such as snne,dse[exact].")
    ] = "all",
    similarity: options.SimilarityName = None,
    without_answer: options.WithoutAnswer = False,
    samples: Annotated[int | None, Option(min=1, help="Use only so many.")] = None,
    grader: options.GraderName = "label",
    base_url: options.JudgeUrl = None,
    resamples: Annotated[int, Option(min=1, help="Resamples for intervals.")] = 1000,
    calls: Annotated[int, Option(min=2, help="Calls of the recipes compared.")] = 5,
    prices: options.TokenPrices = None,
    other: Annotated[
        list[Path] | None,
        Option(
            metavar="RECORDING",
            help="Another model's, of the same questions. Repeatable.",
        ),
    ] = None,
    other_prices: options.OtherPrices = None,
    json_file: Annotated[
        Path | None, Option("--json", help="Write all figures to this file.")
    ] = None,
    report: Annotated[Path | None, Option(help="Page of HTML to write.")] = None,
    show_texts: Annotated[
        bool,
        Option("--show-texts", help="Show in the report where the guard was wrong."),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        Option(metavar="NAME=NUMBER", help="Least auroc, auarc, ... Repeatable."),
    ] = None,
    max_error: Annotated[
        float | None, Option(help="Largest share of wrong answers among the accepted.")
    ] = None,
    at_coverage: Annotated[
        float | None, Option(help="The share of answers to accept for --max-error.")
    ] = None,
    junit: Annotated[Path | None, Option(help="JUnit XML of the limits.")] = None,
    column: options.ColumnNames = None,
) -> None:
    """Rank uncertainty methods by how well they find wrong answers.

    A recording has one JSON object per line: id, question, main_answer, samples, and
    label (1 right, 0 wrong) or the reference answers to grade by. Labels that
    `snne-guard label` wrote beside a file take precedence over those in it.

    Each file gets a table of its own. If it has self-checks, views or samples of other
    models, a second table compares recipes at equal calls and money. If it has
    sentences and sentence_labels (1 or 0 for each), a line says how well their
    uncertainty finds the wrong ones.

    Exit status: 0 all files were ranked; 1 a limit is not kept; 2 wrong usage, or a
    file cannot be ranked.
    """
    if report is not None:  # a missing package ends it before anything is computed
        html_report([])
    limits = [*limits_of(fail_under or (), max_error, at_coverage)]
    columns = options.columns_of(column)
    taken = [*files, *(beside(path, "labels") for path in files), *(other or ())]
    check_outputs(taken, json_file, report, junit)
    others = [OtherRecording(read_recordings(path)) for path in other or ()]
    of_others = options.other_prices_of(other_prices)
    judge = named_grader(grader, base_url=base_url)
    evaluations: list[Evaluation] = []
    for file in files:
        rows = read_labelled(file, columns=columns)
        for one in others:
            rows = one.joined(rows)
        evaluation = evaluate_recordings(
            progress(rows, what="scoring", total=lines_in(file)),
            methods=methods,
            similarity=similarity,
            include_answer=not without_answer,
            samples=samples,
            grader=judge,
            resamples=resamples,
            name=str(file),
            calls=calls,
            prices=options.prices_of(prices),
            other_prices=of_others,
        )
        _require_methods(evaluation)
        evaluations.append(evaluation)
        _print(_parts(evaluation, others))
    if json_file is not None:
        figures = [evaluation.to_dict() for evaluation in evaluations]
        write(json_file, json.dumps(figures, allow_nan=False))
    if report is not None:
        texts = partial(read_labelled, columns=columns) if show_texts else None
        write(report, html_report(evaluations, max_error=max_error or 0.1, texts=texts))
    checked = [limit.checked(each) for each in evaluations for limit in limits]
    for each in checked:
        typer.echo(each.in_words)
    if junit is not None:
        write_junit(junit, checked)
    if not all(each.kept for each in checked):
        raise typer.Exit(_MISSED)


def _require_methods(evaluation: Evaluation) -> None:
    """Check that more than the baseline was ranked, if more was asked for."""
    if evaluation.rows[0].name == BASELINE and evaluation.skipped:
        told = skipped_by_reason(evaluation).items()
        whys = "; ".join(f"{', '.join(names)}: {why}" for why, names in told)
        what = f"nothing but the baseline {BASELINE} can be ranked"
        msg = f"{evaluation.name}: {what}: {whys}"
        raise InputError(msg)


def _parts(
    evaluation: Evaluation, others: Sequence[OtherRecording]
) -> Iterator[str | Table]:
    """Yield the printed parts of a recording: lines and tables."""
    right = "" if evaluation.accuracy is None else f", {evaluation.accuracy:.1%} right"
    answer = "with" if evaluation.include_answer else "without"
    yield evaluation.name
    yield (
        f"{len(evaluation.ids)} of {evaluation.n_read} questions{right} by "
        f"{evaluation.grader}; {evaluation.n_samples} samples {answer} the delivered "
        "answer"
    )
    for why, count in evaluation.left_out.items():
        yield f"left out, {why}: {count}"
    for code, count in evaluation.never_accepted.items():
        yield (
            f"a calibrated guard never accepts {count} of these answers: "
            f"{in_words(code)}"
        )
    titles = ["method", "box", *map(TITLES.__getitem__, evaluation.metrics)]
    yield _table([*titles, "difference"], _method_rows(evaluation))
    for why, names in skipped_by_reason(evaluation).items():
        yield f"not ranked: {', '.join(names)}: {why}"
    if (found := evaluation.sentences) is not None:
        yield (
            f"{found.sentences} sentences of {found.answers} answers, "
            f"{found.accuracy:.1%} right; AUROC {found.auroc:.3f} of all, "
            f"{found.within:.3f} as the mean within answers"
            + ("" if found.grounded is None else f"; grounded {found.grounded:.3f}")
        )
    if evaluation.fields:
        worst = evaluation.fields[0]
        yield (
            f"{len(evaluation.fields)} fields; the most uncertain is {worst.path}, "
            f"with a mean u of {worst.uncertainty:.2f} in {worst.answers} answers"
        )
    if evaluation.recipes is not None:
        yield from _recipe_parts(evaluation.recipes)
    for one in others:
        yield (
            f"{one.name}: its answers to {one.matched} questions are joined; "
            f"{one.unmatched} here and {one.unused} there, whose id or text the other "
            "file does not have, are left out"
        )
    yield ""


def _method_rows(evaluation: Evaluation) -> Iterator[list[str]]:
    """Yield the figures; only the first has its interval, all are in the files."""
    first, *others = evaluation.metrics
    for row in evaluation.ranked:
        difference = row.differences.get(first)
        yield [
            row.name,
            "white" if row.white_box else "black",
            f"{row.metrics[first]:.3f}",
            *(f"{row.metrics[metric].value:.3f}" for metric in others),
            "" if difference is None else f"{difference:+.3f}",
        ]


_COSTS = {
    "calls": "requests",
    "prompt_tokens": "read",
    "cached_tokens": "cached",
    "completion_tokens": "written",
    "reasoning_tokens": "reasoning",
    "money": "money",
}
"""Columns of a recipe's cost, each a mean over the questions."""


def _recipe_parts(compared: RecipeComparison) -> Iterator[str | Table]:
    """Yield the gain and cost of each recipe, and the name of the best."""
    recipes, questions = compared.recipes, sum(compared.thirds)
    shown = [name for name in _COSTS if any(getattr(r.cost, name, 0) for r in recipes)]
    rows: list[list[str]] = []
    for recipe in recipes:
        costs = [getattr(recipe.cost, name, None) for name in shown]
        per_question = ["" if c is None else f"{c / questions:.4g}" for c in costs]
        figures = [str(recipe.calls), f"{recipe.auroc:.3f}", str(recipe.rounds)]
        gain = "" if recipe.gain is None else f"{recipe.gain:+.3f}"
        rows.append([recipe.name, *figures, gain, *per_question])
    titles = ["recipe", "calls", "AUROC", "rounds", "over own"]
    titles += [_COSTS[name] for name in shown]
    if not any(recipe.gain for recipe in recipes):  # none has another model
        for row in (titles, *rows):
            del row[4]
    yield ""
    yield _table(titles, rows)
    if any(recipe.cost and recipe.cost.lower_bound for recipe in recipes):
        yield "warning: a provider left tokens out of its count; costs are higher"
    chosen, measured, _ = compared.thirds
    for what, best in (
        (f"at {compared.calls} calls", compared.at_equal_calls),
        ("for no more money", compared.at_equal_money),
    ):
        found = "none: plain samples, grades, or prices and token counts are missing"
        if best is not None:
            certain = best.gain is not None and best.gain.low > 0
            advice = (
                f"Take {best.name}"
                if certain
                else "Keep plain samples: no gain is certain"
            )
            found = (
                f"{best.name} with {best.calls} calls, chosen on a third of the "
                f"questions ({chosen}). On the second third ({measured}): AUROC "
                f"{best.auroc:.3f}, {best.gain:+.3f} over plain with "
                f"{compared.calls} calls. {advice}."
            )
        yield f"Best {what}: {found}"
    yield "Keep the last third for the threshold: snne-guard calibrate --shard 3/3."


def _print(parts: Iterable[str | Table]) -> None:
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is cut off there.
        console.width = max(console.width, _WIDE)
    for part in parts:
        shown = Text(printable(part)) if isinstance(part, str) else part
        console.print(shown, soft_wrap=isinstance(part, str))


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        words = title in {"method", "box", "recipe"}
        justify: JustifyMethod = "left" if words else "right"
        # Where there is no room, names are folded, never figures.
        table.add_column(title, justify=justify, no_wrap=not words, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
