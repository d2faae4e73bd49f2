"""``snne-guard evaluate``: which method finds the wrong answers of recordings best."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from snne_guard.cli import _options
from snne_guard.cli._console import (
    USAGE,
    count_progress,
    failure,
    note,
    reported_errors,
)
from snne_guard.cli._evaluation_models import Models, cache_folder
from snne_guard.cli._evaluation_options import (
    Setting,
    check_options,
    check_outputs,
    each_once,
    labels_read,
    names,
)
from snne_guard.cli._evaluation_table import print_evaluation, print_means
from snne_guard.cli._files import atomic_output
from snne_guard.cli._graders import named_grader, tell_judges
from snne_guard.errors import InputError
from snne_guard.evaluation.comparison.runner import evaluate as evaluate_recordings
from snne_guard.evaluation.comparison.table import to_csv
from snne_guard.evaluation.reporting.report import check_report_extra, to_html
from snne_guard.evaluation.results import Evaluation

__all__ = ["evaluate"]


def evaluate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE.jsonl…", help="Recordings.")
    ],
    *,
    methods: Annotated[
        str,
        typer.Option(
            help="all, readings (how else the paper and its sources can be read), or "
            "names with commas: dse on all it can run on, dse\\[exact] on that, "
            "module:object for your own."
        ),
    ] = "all",
    similarity: Annotated[
        str | None,
        typer.Option(
            help="What compares answers word by word; several with commas; rouge_l, "
            "and content_f1 for SNNE and its like, unless given."
        ),
    ] = None,
    without_answer: Annotated[
        bool, typer.Option("--without-answer", help="Score the samples alone.")
    ] = False,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="As the paper: samples alone, rouge-score's tokens, tau 1."
        ),
    ] = False,
    tau: Annotated[
        float | None,
        typer.Option(help="Temperature of the similarity, above 0; 1 unless given."),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples of each question that count.")
    ] = None,
    nli: Annotated[
        str | None, typer.Option(help="NLI model: a Hugging Face name or a folder.")
    ] = None,
    embedding: Annotated[
        str | None, typer.Option(help="sentence-transformers model: name or folder.")
    ] = None,
    cross_encoder: Annotated[
        str | None, typer.Option(help="Cross-encoder model, for SAR.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="provider:name of an LLM that says what means the same."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="hf:NAME or openai:NAME, the model itself, for pTrue."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="Where --judge, --model and a judge that grades are served."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for what models say of answers.")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Ask the models anew, keep nothing.")
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="A field by which files are split, as dataset.")
    ] = None,
    labels: _options.Labels = None,
    grader: Annotated[
        str,
        typer.Option(
            help="What grades answers without a label: squad_f1, squad_em, contains, "
            "numeric, rouge_l, bert_score, judge:MODEL, module:function."
        ),
    ] = "label",
    second_grader: Annotated[
        str | None, typer.Option(help="Another grader, to see how far the two agree.")
    ] = None,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Put the grader before the labels.")
    ] = False,
    ablate: Annotated[
        str,
        typer.Option(
            help="Vary tau, similarity, samples, temperature, or all. --json has every "
            "point."
        ),
    ] = "",
    draws: Annotated[
        int, typer.Option(min=1, help="Bootstrap draws behind the intervals.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    mean: Annotated[
        bool,
        typer.Option("--mean", help="Print means over the sets, ± their deviation."),
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to a file.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all that was found to a file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report to look at in a browser.")
    ] = None,
    strict: _options.Strict = False,
) -> None:
    """Rank uncertainty methods by how well they find the wrong answers of recordings.

    FILE.jsonl has one JSON object a line: id, question, main_answer, samples,
    label (1 right, 0 wrong) or answers to grade by, and where known main_logprobs
    and token_logprobs. Labels of `snne-guard label` are found beside each file and
    win over the field. Each file, and each answer_protocol in it, is ranked apart.

    Bad lines are reported with their number and skipped; the exit status is
    then 1, and 2 at wrong usage or where no set can be ranked.
    """
    problems = Problems()
    graders = [
        name and named_grader(name, base_url=base_url)
        for name in (grader, second_grader)
    ]
    outputs = {"--csv": csv, "--json": json_file, "--html": html}
    # As in `score`: a file that is wrong is status 1, a wrong option status 2.
    with (
        reported_errors(),
        _reported_lines(strict=strict),
        count_progress() as on_progress,
    ):
        if html is not None:
            check_report_extra()
        check_options(
            methods=methods,
            regrade=regrade,
            grader=grader,
            cache=cache,
            no_cache=no_cache,
        )
        setting = Setting.of(
            paper=paper, similarity=similarity, tau=tau, without_answer=without_answer
        )
        check_outputs([*files, *labels_read(files, labels)], outputs)
        files = each_once(files)
        asked = Models.of(
            nli=nli,
            embedding=embedding,
            cross_encoder=cross_encoder,
            judge=judge,
            model=model,
            base_url=base_url,
        )
        evaluation = evaluate_recordings(
            files,
            methods=methods,
            models=asked.similarities,
            providers=asked.providers,
            cache=None if no_cache else cache or cache_folder(),
            similarity=setting.similarity,
            include_answer=setting.include_answer,
            tau=setting.tau,
            samples=samples,
            by=by,
            labels=labels,
            grader=graders[0],
            labels_first=not regrade,
            second_grader=graders[1],
            ablate=names(ablate),
            draws=draws,
            seed=seed,
            strict=strict,
            on_problem=problems,
            on_progress=on_progress,
        )
    print_evaluation(evaluation)
    found = {one.path for one in evaluation.sets}
    for name in files:
        if name not in found:
            note(f"{name}: there is no recording in it")
    tell_judges(graders)
    if mean:
        print_means(evaluation)
    with reported_errors():
        for path, make in ((csv, to_csv), (json_file, _to_json), (html, to_html)):
            if path is not None:
                with atomic_output(path) as write:
                    write(make(evaluation).encode("utf-8", "backslashreplace"))
    if not _ranked(evaluation):
        msg = "no question of any file could be ranked"
        raise failure(msg, status=USAGE)
    if problems.count:
        raise typer.Exit(1)


def _ranked(evaluation: Evaluation) -> bool:
    rows = (method for one in evaluation.sets for method in one.methods)
    return any(method.status == "evaluated" for method in rows)


@contextmanager
def _reported_lines(*, strict: bool) -> Generator[None]:
    try:
        yield
    except InputError as error:
        raise failure(str(error), status=1 if strict else USAGE) from error


class Problems:
    """Tells of bad lines as they come, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: str, line: int, message: str) -> None:
        """Tell of one."""
        self.count += 1
        note(f"{path}: line {line}: {message}")


def _to_json(evaluation: Evaluation) -> str:
    return json.dumps(evaluation.to_dict(), allow_nan=False) + "\n"
