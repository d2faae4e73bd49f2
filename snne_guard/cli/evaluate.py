"""``snne-guard evaluate``: which method finds the wrong answers of recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, note, progress
from snne_guard.cli.models import named_grader
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Evaluation, read_labelled, to_html
from snne_guard.evaluation import evaluate as evaluate_recordings
from snne_guard.evaluation.evaluate import with_token_importance
from snne_guard.evaluation.label import labels_path
from snne_guard.evaluation.report import check_report_packages
from snne_guard.evaluation.results import TITLES, BestRecipe, RecipeComparison
from snne_guard.files import replace_file
from snne_guard.similarity import CrossEncoder
from snne_guard.text import printable

__all__ = ["evaluate"]

_WIDE = 130


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING...", help="Recordings with graded answers."),
    ],
    *,
    methods: Annotated[
        str,
        typer.Option(
            help="all, or names separated by commas; dse[exact] runs dse on one "
            "similarity."
        ),
    ] = "all",
    similarity: Annotated[
        str | None,
        typer.Option(
            help="What compares answers, separated by commas: content_f1, rouge_l, "
            "exact, nli:MODEL, embedding:MODEL, ..."
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Score as the paper does: samples alone, its tokens."
        ),
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Use only so many samples of each question."),
    ] = None,
    cross_encoder: Annotated[
        str | None,
        typer.Option(
            help="Model that weighs the recorded tokens, for TokenSAR and SAR."
        ),
    ] = None,
    grader: options.GraderName = "label",
    base_url: options.JudgeUrl = None,
    draws: Annotated[
        int, typer.Option(min=1, help="Bootstrap draws for the intervals.")
    ] = 1000,
    calls: Annotated[
        int, typer.Option(min=2, help="Number of calls at which recipes are compared.")
    ] = 5,
    prices: options.TokenPrices = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to this file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report to open in a browser.")
    ] = None,
) -> None:
    """Rank uncertainty methods by how well they find wrong answers.

    A recording has one JSON object per line: id, question, main_answer, samples, and
    label (1 right, 0 wrong) or the reference answers to grade by. Labels that
    `snne-guard label` wrote beside a file take precedence over those in it.

    Each file gets a table of its own. If it has self-checks or views, a second table
    compares recipes: plain samples, views and the self-check at equal calls. If it has
    sentences and sentence_labels (1 or 0 for each), a line says how well their
    uncertainty finds the wrong ones.

    Exit status: 0 a file was ranked; 2 wrong usage, or no file can be ranked.
    """
    if html is not None:
        check_report_packages()
    if paper and similarity is not None:
        msg = "--paper compares by rouge_l_paper; leave --similarity off"
        raise ConfigurationError(msg)
    files = [*dict.fromkeys(files)]
    outputs = {"--json": json_file, "--html": html}
    check_outputs([*files, *map(labels_path, files)], outputs)
    chosen = "rouge_l_paper" if paper else similarity
    judge = named_grader(grader, base_url=base_url)
    weights = None if cross_encoder is None else CrossEncoder(cross_encoder)
    evaluations: list[Evaluation] = []
    for file in files:
        rows = progress(read_labelled(file), what="scoring")
        try:
            evaluation = evaluate_recordings(
                rows if weights is None else with_token_importance(rows, weights),
                methods=methods,
                similarity=None if chosen is None else chosen.split(","),
                include_answer=not paper,
                samples=samples,
                grader=judge,
                draws=draws,
                name=str(file),
                calls=calls,
                prices=options.prices_of(prices),
            )
        except InputError as error:
            note(f"{file}: {error}")
            continue
        evaluations.append(evaluation)
        _print(evaluation)
    if not evaluations:
        raise typer.Exit(2)
    if json_file is not None:
        figures = [evaluation.to_dict() for evaluation in evaluations]
        _write(json_file, json.dumps(figures, allow_nan=False))
    if html is not None:
        _write(html, to_html(evaluations))


def _write(path: Path, text: str) -> None:
    with replace_file(path) as stream:
        stream.write(text.encode("utf-8", "replace"))


def _print(evaluation: Evaluation) -> None:
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is cut off there.
        console.width = max(console.width, _WIDE)
    right = "" if evaluation.accuracy is None else f", {evaluation.accuracy:.1%} right"
    answer = "with" if evaluation.include_answer else "without"
    _print_line(console, evaluation.name, style="bold")
    _print_line(
        console,
        f"{len(evaluation.ids)} of {evaluation.n_read} questions{right} by "
        f"{evaluation.grader}; {evaluation.n_samples} samples {answer} the delivered "
        "answer",
    )
    for why, count in evaluation.left_out.items():
        _print_line(console, f"left out, {why}: {count}")
    console.print(_table(evaluation))
    for why, names in evaluation.skipped.items():
        _print_line(console, f"not ranked: {', '.join(names)}: {why}")
    if evaluation.sentences is not None:
        _print_line(console, str(evaluation.sentences))
    console.print()
    if evaluation.recipes is not None:
        _print_recipes(console, evaluation.recipes)


_COSTS = {
    "calls": "requests",
    "prompt_tokens": "read",
    "cached_tokens": "cached",
    "completion_tokens": "written",
    "reasoning_tokens": "reasoning",
    "money": "money",
}
"""Columns of a recipe's cost, each a mean over the questions."""


def _print_recipes(console: Console, compared: RecipeComparison) -> None:
    """Print what each recipe finds and costs, and which one is best."""
    recipes, questions = compared.recipes, sum(compared.thirds)
    shown = [name for name in _COSTS if any(getattr(r.cost, name, 0) for r in recipes)]
    table = Table(box=None, pad_edge=False)
    table.add_column("recipe", no_wrap=True)
    for title in ("calls", "AUROC", "rounds", *map(_COSTS.__getitem__, shown)):
        table.add_column(title, justify="right", no_wrap=True)
    for recipe in recipes:
        values = [getattr(recipe.cost, name, None) for name in shown]
        table.add_row(
            escape(printable(recipe.name)),
            str(recipe.calls),
            f"{recipe.auroc:.3f}",
            str(recipe.rounds),
            *("" if value is None else f"{value / questions:.4g}" for value in values),
        )
    console.print(table)
    for sentence in _headlines(compared):
        _print_line(console, sentence)
    console.print()


def _headlines(compared: RecipeComparison) -> Iterator[str]:
    by_calls, by_money = compared.at_equal_calls, compared.at_equal_money
    if any(one.cost and one.cost.lower_bound for one in compared.recipes):
        yield "beware: a provider left tokens out of its count; the costs are higher"
    if by_calls is None:
        yield (
            f"No recipe is chosen: that takes {compared.calls - 1} plain samples of "
            "each question, and right and wrong answers in the first two thirds."
        )
        return
    yield f"Best at {compared.calls} calls: {_figures(by_calls, compared)}"
    if by_money is None:
        yield (
            "Nothing is compared at equal money: that takes --prices, and a recording "
            "with the tokens of each request."
        )
    else:
        yield f"Best for no more money: {_figures(by_money, compared)}"
    yield "Keep the last third for the threshold: snne-guard calibrate --shard 3/3."


def _figures(best: BestRecipe, compared: RecipeComparison) -> str:
    chosen, measured, _ = compared.thirds
    return (
        f"{best.name} with {best.calls} calls, chosen on a third of the questions "
        f"({chosen}). On the second third ({measured}): AUROC {best.auroc:.3f}, "
        f"{best.gain:+.3f} over plain with {compared.calls} calls."
    )


def _print_line(console: Console, text: str, *, style: str | None = None) -> None:
    shown = printable(text)
    console.print(shown, style=style, markup=False, highlight=False, soft_wrap=True)


def _table(evaluation: Evaluation) -> Table:
    """Return the figures; only the first has its interval, all are in the files."""
    metrics = evaluation.metrics
    table = Table(box=None, pad_edge=False)
    for title in ("method", "box"):
        table.add_column(title, no_wrap=True)
    for title in (*(TITLES[metric] for metric in metrics), "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in evaluation.ranked:
        difference = row.differences.get(metrics[0])
        table.add_row(
            escape(printable(row.name)),
            "white" if row.white_box else "black",
            f"{row.metrics[metrics[0]]:.3f}",
            *(f"{row.metrics[metric].value:.3f}" for metric in metrics[1:]),
            "" if difference is None else f"{difference:+.3f}",
        )
    return table
