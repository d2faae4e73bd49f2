"""``snne-guard record``: answers and samples for a data set, drawn into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from snne_guard.cli import _options
from snne_guard.cli._console import note, reported_errors
from snne_guard.cli._datasets import Source
from snne_guard.cli._drawing import DrawSettings, guard_draw
from snne_guard.cli._models import chat_model
from snne_guard.cli._record_run import RecordRun
from snne_guard.evaluation import DATASETS, RecordingStore
from snne_guard.sampling.prices import Prices

__all__ = ["record"]


def record(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTIONS.jsonl",
            help="Questions; - is stdin. Not with --dataset.",
            show_default=False,
        ),
    ] = None,
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
    stop: Annotated[
        list[str] | None,
        typer.Option(help=r"Text that ends a reply, \n a line; may come often."),
    ] = None,
    send_stop: Annotated[
        bool, typer.Option(help="Whether the model is told it, or only the reply cut.")
    ] = True,
    completion: Annotated[
        bool,
        typer.Option(
            "--completion", help="An hf: model goes on with the text: no chat template."
        ),
    ] = False,
    prompt_version: Annotated[
        str | None,
        typer.Option(help="Your name for this prompt: a calibration is bound to it."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help=f"Of the paper: {', '.join(DATASETS)}.")
    ] = None,
    dataset_file: Annotated[
        Path | None, typer.Option(help="Where it is, if not on the Hugging Face hub.")
    ] = None,
    dataset_seed: Annotated[
        int | None, typer.Option(help="Which shots and questions; else the paper's.")
    ] = None,
    shots: Annotated[
        int | None, typer.Option(min=0, help="Questions shown with their answers.")
    ] = None,
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
    context, answers and anything else, which is carried over. With --dataset the
    questions, prompts, shots, stop texts and limits are the paper's.

    The same command goes on where it was ended, in whatever way. Questions that fail
    are kept in a file beside the output. Without --model the small embedded model
    answers; unless --system is given it is shown that answers are to be short.

    Exit status: 0 every question is recorded; 1 some are not; 2 wrong usage; 130
    interrupted; 143 ended by SIGTERM.
    """
    console = Console(stderr=True)
    with reported_errors():
        source = Source(
            questions=file,
            dataset=dataset,
            file=dataset_file,
            seed=dataset_seed,
            shots=shots,
        )
        settings = source.complete(
            DrawSettings(
                model=model,
                temperature=temperature,
                answer_temperature=answer_temperature,
                samples=samples,
                max_tokens=max_tokens,
                system=system,
                seed=seed,
                stop=None if not stop else tuple(map(_written, stop)),
                completion=completion,
                prompt_version=prompt_version,
                send_stop=send_stop,
            )
        )
        with source.open(output=output, limit=limit, console=console) as questions:
            chat = chat_model(
                model,
                base_url=base_url,
                seed=seed,
                console=console,
                completion=completion,
            )
            settings = settings.known(chat)
            draw = guard_draw(
                chat,
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
                    questions=questions,
                    console=console,
                    strict=strict,
                    n_samples=samples,
                    max_concurrency=max_concurrency,
                    retry_failed=retry_failed,
                )
                status = run.go()
    raise typer.Exit(status)


def _written(text: str) -> str:
    """Return a text as it was meant: a shell has no simple way to give a new line."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
