"""``snne-guard record``: answers and samples for a data set, drawn into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from snne_guard.cli import _options
from snne_guard.cli._console import note, reported_errors
from snne_guard.cli._drawing import DrawSettings, guard_draw
from snne_guard.cli._files import open_input, refuse_same_file
from snne_guard.cli._models import chat_model
from snne_guard.cli._record_run import RecordRun
from snne_guard.evaluation import RecordingStore
from snne_guard.evaluation.store import failed_path
from snne_guard.sampling.prices import Prices

__all__ = ["record"]


def record(
    file: Annotated[
        str, typer.Argument(metavar="QUESTIONS.jsonl", help="Questions; - is stdin.")
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The recording; it is appended to.")
    ],
    model: _options.Model = None,
    base_url: _options.BaseUrl = None,
    samples: Annotated[
        int, typer.Option(min=1, help="Samples besides the answer.")
    ] = 10,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Take the first so many questions only.")
    ] = None,
    temperature: _options.SampleTemperature = 1.0,
    answer_temperature: Annotated[
        float | None, typer.Option(help="Temperature of the answer; else the model's.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Token limit of a reply.")
    ] = None,
    system: _options.System = None,
    seed: _options.Seed = None,
    max_concurrency: Annotated[
        int, typer.Option(min=1, help="Requests in flight at once.")
    ] = 4,
    max_attempts: Annotated[
        int, typer.Option(min=1, help="Requests for a reply before it has failed.")
    ] = 4,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for one question.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Draw again what failed before.")
    ] = False,
    mix_settings: Annotated[
        bool,
        typer.Option("--mix-settings", help="Go on in a file drawn otherwise."),
    ] = False,
    strict: _options.Strict = False,
    prices: _options.Prices = None,
) -> None:
    """Draw the answer and samples of each question of a data set into a recording.

    QUESTIONS.jsonl has one JSON object a line: question, and where known id,
    context, answers and anything else, which is carried over.

    The same command goes on where it was ended, in whatever way. Questions that fail
    are kept in a file beside the output. Without --model the small embedded model
    answers; unless --system is given it is shown that answers are to be short.

    Exit status: 0 every question is recorded; 1 some are not; 2 wrong usage; 130
    interrupted.
    """
    console = Console(stderr=True)
    settings = DrawSettings(
        model=model,
        temperature=temperature,
        answer_temperature=answer_temperature,
        samples=samples,
        max_tokens=max_tokens,
        system=system,
        seed=seed,
    )
    with reported_errors(), open_input(file) as (stream, size):
        for path in (output, failed_path(output)):
            refuse_same_file(stream, path)
        draw = guard_draw(
            chat_model(model, base_url=base_url, seed=seed, console=console),
            settings,
            max_concurrency=max_concurrency,
            max_attempts=max_attempts,
            timeout=timeout,
            prices=None if prices is None else Prices.parse(prices),
        )
        with RecordingStore(
            output, settings=settings.to_dict(), mix_settings=mix_settings
        ) as store:
            if store.torn:
                note(f"{store.torn} bytes of a torn line are now in {output}.torn")
            run = RecordRun(
                store,
                draw,
                stream=stream,
                rewinds=size is not None,
                limit=limit,
                console=console,
                strict=strict,
                n_samples=samples,
                max_concurrency=max_concurrency,
                retry_failed=retry_failed,
            )
            status = run.go()
    raise typer.Exit(status)
