"""Recording and scoring on Ray Data: workers on this machine or on a cluster.

Ray is imported where it is used. A worker is an actor around a guard's ``aassess``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from snne_guard.cost import Cost, RequestCost
from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.recorded_calls import DRAWN, drawing_of, drawn_fields
from snne_guard.evaluation.recorder import RecordingRun, failure
from snne_guard.evaluation.recordings import Question, Recording
from snne_guard.evaluation.scoring import score_record, score_recording
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment, Reply, Score, Similarity

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

    from snne_guard.langchain import SNNEGuard
    from snne_guard.langchain.wrappers import ChatRunnable
    from snne_guard.scorers import Method

_SCORE = "snne_guard"
_ROUNDS = 4  # of questions in flight to a block: smaller ones cost more than they save
_SCORED_AT_ONCE = 1_000  # rows that become Python objects


def record(
    dataset: Dataset,
    *,
    model: Callable[[], ChatRunnable],
    samples: int = 10,
    messages: Sequence[tuple[str, str]] = (),
    workers: int = 2,
    num_cpus: float = 0.25,
    num_gpus: float = 0.0,
    max_concurrency: int = 4,
    **options: Any,  # noqa: ANN401 - of SNNEGuard
) -> Dataset:
    """Draw an answer and samples to each question of a data set.

    A worker that dies is started anew and asks again what it had in hand, at most
    ``8 * max_concurrency`` questions; what it has handed over is not asked again.

    Args:
        dataset: Rows as ``read_questions`` takes them: ``question``, and where known
            ``id``, ``context``, ``answers`` and anything else.
        model: Returns the chat model; called once in each worker, which reads keys from
            its own environment.
        samples: Samples besides the answer.
        messages: Sent before each question, as ``[("system", "Answer briefly.")]``.
        workers: Processes that ask.
        num_cpus: CPUs that Ray reserves for each, a fraction for a model that is
            served.
        num_gpus: GPUs for each, for a model that runs in the worker.
        max_concurrency: Questions, and requests, in flight at once in each worker.
        **options: Of ``SNNEGuard``, such as ``temperature``, ``self_check`` and
            ``prices``.

    Returns:
        The rows, lazily, with the columns of a recording. ``error`` says why a question
        failed, and is null where it did not.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigurationError: An option makes no sense.
    """
    ray = _ray()
    guarding = {
        "schedule": "answer_first",
        "n": 1 + samples + bool(options.get("self_check")),
        "max_concurrency": max_concurrency,
        **options,
    }
    # Here a wrong option is named once; in the workers it would be one of many errors.
    GuardSettings.given(**guarding)
    return dataset.repartition(
        target_num_rows_per_block=_ROUNDS * max_concurrency, strict=True
    ).map_batches(
        _Recorder,
        fn_constructor_args=(model,),
        fn_constructor_kwargs={"messages": messages, "guarding": guarding},
        # While the last questions of one block are open, the next one is begun.
        compute=ray.data.ActorPoolStrategy(
            size=workers, max_concurrent_calls_per_actor=2
        ),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        batch_format="pyarrow",
    )


def score(
    dataset: Dataset,
    *,
    method: str | Method = "auto",
    similarity: str | Similarity | None = None,
    include_answer: bool = True,
    num_cpus: float = 1.0,
    num_gpus: float = 0.0,
) -> Dataset:
    """Score how far the recorded answers to each question differ.

    Args:
        dataset: Rows of a recording, as ``record`` returns them.
        method: As for ``snne_guard.score``.
        similarity: Likewise; a model is loaded once in each process.
        include_answer: Whether the answer is scored beside its samples.
        num_cpus: CPUs for a task.
        num_gpus: GPUs for a task.

    Returns:
        The rows, lazily, with a column ``snne_guard``: ``uncertainty``, ``method``,
        ``reasons`` and the like; null for a question that failed.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    _ray()
    given = {"similarity": similarity, "include_answer": include_answer}
    return dataset.map_batches(
        _scored,
        batch_size=_SCORED_AT_ONCE,
        fn_kwargs={"method": method, **given},
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        batch_format="pyarrow",
    )


def record_file(run: RecordingRun, **options: Any) -> None:  # noqa: ANN401 - of record
    """Draw what is left of a run on Ray, a line as each question arrives.

    The options are those of ``record``. Workers hand over what they have in hand where
    a run stops early; it is drawn again.
    """
    ray = _ray()
    left = {question.id: question for question in run.left}
    if not left:
        return
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level="error")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    questions = [
        {"id": each.id, "question": each.question, "context": each.context}
        for each in run.left
    ]
    dataset = ray.data.from_items(questions, override_num_blocks=1)
    for row in record(dataset, samples=run.n_samples, **options).iter_rows():
        drawn = _as_written(row, run)
        cost = Cost(**drawn["drawn"]["cost"]) if drawn else None
        run.write(left[row["id"]], drawn, cost=cost, error=row["error"])
        if run.is_down:
            break


def recorded_settings(
    guard: SNNEGuard, *, messages: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Return the settings by which a guard draws, as a recording has them."""
    from snne_guard.langchain.wrappers import ModelTree

    tree = ModelTree(guard.guarded)
    system = next((text for role, text in messages if role == "system"), None)
    drawn = drawing_of(guard.settings)
    return {**tree.named, "system": system, **drawn, **tree.answer_settings}


class _Recorder:
    """A worker: a guard, and the loop that Ray runs its questions in."""

    def __init__(
        self,
        model: Callable[[], ChatRunnable],
        *,
        messages: Sequence[tuple[str, str]],
        guarding: Mapping[str, Any],
    ) -> None:
        from snne_guard.langchain import SNNEGuard

        self._guard = SNNEGuard(model(), **guarding)
        self._messages = messages
        self._settings = recorded_settings(self._guard, messages=messages)
        self._limit = asyncio.Semaphore(guarding["max_concurrency"])

    async def __call__(self, table: pa.Table) -> pa.Table:
        rows = await asyncio.gather(*map(self._row, table.to_pylist()))
        return _with_columns(table, rows, like=self._full_row(), drop=DRAWN)

    async def _row(self, given: dict[str, Any]) -> dict[str, Any]:
        key = given.get("id")
        drawn: Assessment | Exception
        async with self._limit:
            try:
                question = Question.from_dict(given)
                key = question.id
                prompt = [*self._messages, ("human", question.prompt)]
                drawn = await self._guard.aassess(prompt)
            except Exception as raised:  # noqa: BLE001 - the next question may succeed
                drawn = raised
        fields = drawn_fields(drawn, settings=self._settings)
        error = failure(drawn, n_samples=self._guard.settings.n_samples)
        return {"id": None if key is None else str(key), **fields, "error": error}

    def _full_row(self) -> dict[str, Any]:
        """Return a row in which everything is known."""
        said: Any = {"finish_reason": "stop", "model": "name", "refused": True}
        reply = Reply(text="", token_logprobs=(-1.0,), tokens=("",), **said)
        full = Assessment(
            id="",
            answer=reply,
            samples=(reply,),
            self_check=0.5,
            reasons=("reason",),
            cost=Cost(money=1.0),
            requests=(RequestCost(role="answer", view="plain", money=1.0),),
        )
        fields = drawn_fields(full, settings=self._settings)
        return {"id": "", **fields, "error": ""}


def _with_columns(
    table: pa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    like: Mapping[str, Any],
    drop: Collection[str] = (),
) -> pa.Table:
    """Return a table with the columns of rows, without its own that they replace.

    ``like`` is a row in which everything is known: without it, the types of a block
    would depend on what its rows happen to have.
    """
    import pyarrow as pa

    added = pa.Table.from_pylist([like, *rows]).slice(1)
    old = {*like, *drop} & {*table.column_names}
    table = table.drop_columns([*old])
    for field in added.schema:
        table = table.append_column(field, added[field.name])
    return table


def _as_written(row: Mapping[str, Any], run: RecordingRun) -> dict[str, Any]:
    """Return the ``drawn_fields`` of a row: a table has nulls for what is not there."""
    if row["main_answer"] is None:
        return {}
    fields = {name: row[name] for name in row if name in DRAWN}
    shard = {} if run.shard is None else {"shard": run.shard}
    return {**fields, "settings": run.settings, "drawn": {**shard, **fields["drawn"]}}


def _scored(table: pa.Table, **options: Any) -> pa.Table:  # noqa: ANN401 - of score
    scores = [
        None
        if row.get("main_answer") is None
        else score_record(score_recording(Recording.from_dict(row), **options))
        for row in table.to_pylist()
    ]
    names: Any = {"method": "", "similarity": "", "reasons": ("reason",)}
    full = Score(value=1.0, uncertainty=0.5, tau=1.0, n=2, **names)
    rows = [{_SCORE: each} for each in scores]
    return _with_columns(table, rows, like={_SCORE: score_record(full)})


def _ray() -> Any:  # noqa: ANN401 - the module
    try:
        import ray
        import ray.data
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "ray", extra="ray") from error
    return ray
