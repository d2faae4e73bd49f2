"""``snne-guard record``: answers and samples for a file of questions."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from typer import Argument, Option

from snne_guard.cli import options
from snne_guard.cli.batch import record_by_batch
from snne_guard.cli.console import check_outputs, in_shard, note, source, tell_left_out
from snne_guard.cli.models import chat_model, messages_before, model_in_words
from snne_guard.cli.render import cost_in_words
from snne_guard.cost import Cost, Prices
from snne_guard.distributed import record_file, recorded_settings
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.decision_log import logged_recordings
from snne_guard.evaluation.jsonl import AppendFile, beside, read_appended
from snne_guard.evaluation.recorder import RecordingRun
from snne_guard.evaluation.recorder import record as draw
from snne_guard.evaluation.recordings import (
    Question,
    answer_digest,
    read_labels,
    read_questions,
)
from snne_guard.self_check import SelfCheck
from snne_guard.types import Assessment
from snne_guard.views import EXTRA_TOKENS, VIEWS, View

SECONDS_BETWEEN_LINES = 60.0
"""How often a run that writes to a log says how far it is."""

_LONGEST = 200  # characters shown of an error
_KINDS = 5  # of errors that are shown
_ENOUGH = 10  # replies, of which a share says something
_CHARACTERS = 4  # of a token, roughly


def record(
    questions: Annotated[
        str,
        Argument(metavar="QUESTIONS", help="JSONL or CSV; - reads JSONL from stdin."),
    ],
    *,
    output: Annotated[Path, Option("--output", "-o", help="Recording to write.")],
    model: options.Model = "embedded",
    base_url: options.BaseUrl = None,
    samples: Annotated[int, Option(min=1, help="Samples besides the answer.")] = 4,
    other_model: options.OtherModels = None,
    other_base_url: options.OtherUrl = None,
    shard: options.Shard = None,
    temperature: Annotated[float, Option(help="Temperature of the samples.")] = 1.0,
    answer_temperature: Annotated[
        float | None, Option(min=0, help="Of the answer; the model's own by default.")
    ] = None,
    max_tokens: Annotated[int | None, Option(min=1, help="Limit of a reply.")] = None,
    stop: Annotated[
        list[str] | None, Option(help=r"Text that ends a reply, \n a line. Repeatable.")
    ] = None,
    system: options.System = None,
    self_check: options.SelfCheck = False,
    self_check_form: options.SelfCheckForm = "yes_no",
    views: Annotated[
        str, Option(help="all, or plain, examples and reasoning, separated by commas.")
    ] = "",
    seed: Annotated[int | None, Option(help="Seed of the answer alone.")] = None,
    max_concurrency: Annotated[int, Option(min=1, help="Requests in flight.")] = 4,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Ask again what failed before.")
    ] = False,
    prices: options.TokenPrices = None,
    other_prices: options.OtherPrices = None,
    max_requests: Annotated[
        int | None, Option(min=1, help="Stop cleanly after this many requests.")
    ] = None,
    ray: Annotated[
        int | None, Option(min=1, metavar="WORKERS", help="Ask with Ray workers.")
    ] = None,
    batch: Annotated[
        Literal["openai"] | None,
        Option(help="Ask by its batch API, at half the price."),
    ] = None,
    from_log: Annotated[
        bool,
        Option("--from-log", help="Take the calls of a decision log, ask nothing."),
    ] = False,
    policy: Annotated[
        str | None, Option(help="With --from-log: only this policy's calls.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Ask nothing; print what it would take.")
    ] = False,
    column: options.ColumnNames = None,
) -> None:
    """Ask a model the questions in a file and record its replies.

    QUESTIONS.jsonl has one JSON object per line with a question and, if you have them,
    id, context and answers; QUESTIONS.csv has these columns, and --column names others.
    Other fields are carried over.

    Run the same command again to resume, however it ended. Questions that fail go to a
    file next to the output. API keys come from the environment.

    Exit status: 0 every question is recorded; 1 some are not; 2 wrong usage; 130
    interrupted.
    """
    from snne_guard.langchain import SNNEGuard
    from snne_guard.langchain.others import names_of
    from snne_guard.langchain.wrappers import ModelTree

    _check_way(model, batch, ray, other_model, policy=None if from_log else policy)
    check_outputs([questions], output)
    if from_log:
        _take_log(Path(questions), output, policy)
        return
    # All are read first: a bad line must not end a run that has cost something.
    read = read_questions(source(questions), columns=options.columns_of(column))
    asked = list(in_shard(read, shard))
    before = messages_before(model, system)
    make = partial(
        chat_model,
        model,
        base_url=base_url,
        stop=stop and [text.replace("\\n", "\n") for text in stop],
        temperature=answer_temperature,
        max_tokens=max_tokens,
        seed=seed,
    )
    guarded = make()
    others = [chat_model(one, base_url=other_base_url) for one in other_model or ()]
    check = SelfCheck(form=self_check_form) if self_check else None
    own, of_others = options.prices_of(prices), options.other_prices_of(other_prices)
    guarding: dict[str, Any] = {
        # Nothing is paid for samples of an answer that fails.
        "schedule": "answer_first",
        "self_check": check or False,
        "views": [*VIEWS] if views == "all" else options.names_in(views),
        "temperature": temperature,
        "max_concurrency": max_concurrency,
        "prices": {names_of([guarded])[0]: own, **of_others} if others else own,
    }
    n = 1 + samples + len(others) + self_check
    guard = SNNEGuard(guarded, n=n, other_models=others, **guarding)
    settings = {**recorded_settings(guard, messages=before), "seed": seed}
    # A model is called as the user named it.
    settings |= {} if model == "embedded" else {"model": model}
    # The view of each request, and how many replies it brings; the answer's is first.
    turns = guard.settings.sample_views
    takes_n = "n" in ModelTree(guard.guarded).parameters
    sampling = Counter(turns).items() if takes_n else ((view, 1) for view in turns)
    requests = [(None, 1), *sampling]
    running = partial(
        RecordingRun,
        settings=settings,
        n_samples=samples + len(others),
        retry_failed=retry_failed,
    )
    if dry_run:
        if output.exists():
            with running(output, asked) as run:
                asked = run.left
        lines = _dry_run_lines(
            ([*before, ("human", question.prompt)] for question in asked),
            requests=requests,
            self_check=check,
            max_tokens=settings.get("max_tokens"),
            prices=own,
            of_others=[of_others.get(name) for name in guard.settings.other_models],
        )
        typer.echo("\n".join(lines))
        return

    async def ask(question: Question) -> Assessment:
        return await guard.aassess([*before, ("human", question.prompt)])

    with running(
        output,
        asked,
        shard=shard,
        max_requests=max_requests,
        requests_each=len(requests) + len(others) + self_check,
    ) as run:
        start = time.monotonic()
        note(f"asking {model_in_words(model)}")
        try:
            with _progress_shown(run):
                if batch:
                    record_by_batch(guard, run, messages=before)
                elif ray:
                    record_file(
                        run, model=make, messages=before, workers=ray, **guarding
                    )
                else:
                    asyncio.run(draw(run, ask, max_concurrency=max_concurrency))
        except KeyboardInterrupt:
            note("interrupted; run the same command again to continue")
            raise
        _tell_how_it_went(run, seconds=time.monotonic() - start)
        complete = not (run.stopped or run.failures())
    raise typer.Exit(0 if complete else 1)


def _take_log(log: Path, output: Path, policy: str | None) -> None:
    """Append the calls of a decision log that a recording has not."""
    left_out = Counter[str]()
    labels = read_labels(beside(log, "labels"))
    count = 0
    with AppendFile(output) as file:
        known = {str(row.get("id")) for row in read_appended(output, dict)}
        for row in logged_recordings(log, policy=policy, left_out=left_out):
            if row.id in known:
                left_out["calls that are there already"] += 1
                continue
            label = labels.get(answer_digest(row))
            file.append(replace(row, label=label).to_dict())
            known.add(row.id)
            count += 1
    typer.echo(f"{count} calls recorded in {output}")
    tell_left_out(left_out)


def _check_way(
    model: str, batch: object, ray: object, others: object, *, policy: object
) -> None:
    if policy is not None:
        msg = "--policy has no effect without --from-log"
        raise ConfigurationError(msg)
    if batch and (ray or not model.startswith("openai:")):
        msg = "--batch openai needs --model openai:NAME and does not work with --ray"
        raise ConfigurationError(msg)
    if others and (batch or ray):
        msg = "--other-model does not work with --batch or --ray"
        raise ConfigurationError(msg)


def _dry_run_lines(
    conversations: Iterable[Sequence[tuple[str, str]]],
    *,
    requests: Sequence[tuple[View | None, int]],
    self_check: SelfCheck | None,
    max_tokens: int | None,
    prices: Prices | None,
    of_others: Sequence[Prices | None],
) -> Iterator[str]:
    """Yield the requests, tokens and money that conversations will take."""
    limit, n, read, written, plain = max_tokens or 0, 0, 0, 0, 0
    for conversation in conversations:
        n += 1
        messages = [{"role": role, "content": text} for role, text in conversation]
        for view, replies in requests:
            read += _tokens(view.rewritten(messages) if view else messages)
            extra = EXTRA_TOKENS if view and view.extract else 0
            written += replies * (limit + extra)
        plain += _tokens(messages)
        if self_check:
            read += _tokens([*messages, {"content": self_check.prompt}]) + limit
            written += limit
    each = len(requests) + len(of_others) + bool(self_check)
    taken = [(prices, read, written), *((one, plain, n * limit) for one in of_others)]
    yield f"questions to ask  {n}"
    yield f"requests          {n * each} ({each} per question)"
    total = sum(tokens for _, tokens, _ in taken)
    yield f"input tokens      about {total} (characters / {_CHARACTERS})"
    if max_tokens is not None:
        yield f"output tokens     at most {sum(most for *_, most in taken)}"
    money = 0.0
    for price, tokens, most in taken:
        if max_tokens is None or price is None:
            needed = "--max-tokens and --prices"
            needed = f"{needed}, and --other-prices of each" if of_others else needed
            yield f"money             unknown without {needed}"
            return
        money += price.of(Cost(prompt_tokens=tokens, completion_tokens=most))
    yield f"money             at most about {money:.6f}, none of it cached"


def _tokens(messages: Sequence[Mapping[str, str]]) -> int:
    return -(-len("\n".join(each["content"] for each in messages)) // _CHARACTERS)


@contextmanager
def _progress_shown(run: RecordingRun) -> Iterator[None]:
    """Show how far a run is: in place on a terminal, at times in a log."""
    console = Console(stderr=True)
    start = last = time.monotonic()
    warned = False

    def show() -> None:
        nonlocal last, warned
        now, cost = time.monotonic(), run.cost
        seconds = max(now - start, 1e-9)
        tokens = cost.prompt_tokens + cost.completion_tokens
        done = run.recorded + run.failed
        left = timedelta(seconds=round((len(run.left) - done) * seconds / done))
        money = "" if cost.money is None else f", price {cost.money:.6f} so far"
        line = (
            f"{done} of {len(run.left)} asked, {left} left: {_counted(run)}; "
            f"{done / seconds:.2f} questions and {tokens / seconds:.0f} tokens a "
            f"second{money}"
        )
        status.update(line)
        if not console.is_terminal and now - last >= SECONDS_BETWEEN_LINES:
            last = now
            note(line)
        if not warned and run.warning and run.replies >= _ENOUGH:
            warned = True
            note(run.warning)

    with console.status("asking") as status:
        run.on_done = show
        yield


def _counted(run: RecordingRun) -> str:
    """Return the numbers of questions recorded, known and failed."""
    return f"{run.recorded} recorded, {run.known} already there, {run.failed} failed"


def _tell_how_it_went(run: RecordingRun, *, seconds: float) -> None:
    """Tell the cost and the failures of a run, equal errors together."""
    cost = replace(run.cost, seconds=seconds)  # the wall's, not the sum over requests
    note(f"{_counted(run)}; {cost_in_words(cost)}")
    for told in filter(None, (run.warning, run.stopped)):
        note(told)
    counts = Counter(error[:_LONGEST] for error in run.failures().values())
    for error, count in counts.most_common(_KINDS):
        note(f"{count} not recorded: {error}")
    if counts:
        where = f"the failed questions are in {run.failures_path}"
        note(f"{where}; --retry-failed asks them again")
