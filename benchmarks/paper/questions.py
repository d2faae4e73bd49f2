"""Questions of one of the paper's data sets, each with its whole prompt."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.data_sets import DATA_SETS, DataSet
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Question, read_questions

__all__ = ["N_QUESTIONS", "Chosen", "choose"]

N_QUESTIONS = 400
"""Questions of each data set that the paper asks."""

_PARQUET = "refs/convert/parquet"
"""Where the hub keeps the tables of a data set that is a program."""

Pool = Sequence[Question]
Table = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What is asked.

    Attributes:
        questions: Each has its whole prompt in ``extra["prompt"]``.
        for_p_true: Further ones, whose answers become the examples of pTrue.
    """

    questions: tuple[Question, ...]
    for_p_true: tuple[Question, ...] = ()


def choose(
    name: str,
    /,
    *,
    file: Path | None = None,
    limit: int = N_QUESTIONS,
    p_true_shots: int = 0,
) -> Chosen:
    """Choose questions of a data set by chance and put them as the paper does.

    The same ones come in the same order each time, and a larger ``limit`` adds to those
    of a smaller one. Questions without a reference answer are left out, and what is
    shown as an example is never asked.

    Args:
        name: A key of ``DATA_SETS``.
        file: In place of the Hugging Face hub: questions, one JSON object a line
            (``.jsonl``), or an object of lists by split with rows as the hub has them
            (``.json``, as BioASQ's ``training11b.json``).
        limit: Questions that are asked, at most.
        p_true_shots: Questions for the examples of pTrue.

    Raises:
        ConfigurationError: The data set is not on the hub.
        InputError: The file holds something else, or too few questions.
        OSError: The file cannot be read.
    """
    data_set = DATA_SETS[name]
    shots, seed = data_set.shots, data_set.seed
    asked, shown = _pools(data_set, file)
    if len(shown) < shots + p_true_shots:
        msg = (
            f"expected at least {shots + p_true_shots} questions with answers to show "
            f"as examples, got {len(shown)}"
        )
        raise InputError(msg)
    # The authors' draws, so that their rows in the same order give their examples.
    chance = random.Random(seed)  # noqa: S311 - no secret
    examples = chance.sample(shown, shots)
    others = [one for one in shown if one not in examples]
    for_p_true = chance.sample(others, p_true_shots)
    taken = {one.id for one in (*examples, *for_p_true)} if asked is shown else set()
    left = [one for one in asked if one.id not in taken]
    put = [
        _put(name, one, shots=[_ended(data_set, shot) for shot in examples])
        for one in (*_shuffled(left, seed=seed)[:limit], *for_p_true)
    ]
    count = len(put) - p_true_shots
    return Chosen(questions=(*put[:count],), for_p_true=(*put[count:],))


def _shuffled(pool: Pool, *, seed: int) -> list[Question]:
    """Return as many as the paper takes, as it draws them, then the others."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    first = chance.sample(pool, min(N_QUESTIONS, len(pool)))
    ids = {one.id for one in first}
    rest = [one for one in pool if one.id not in ids]
    chance.shuffle(rest)
    return first + rest


def _ended(data_set: DataSet, question: Question) -> Question:
    text = question.question
    ended = text if text.endswith(data_set.ends_in) else text + data_set.ends_in
    context = question.context if data_set.prompt.context else None
    return replace(question, question=ended, context=context)


def _put(name: str, question: Question, *, shots: Pool) -> Question:
    """Return a question as the data set asks it, with its prompt."""
    data_set = DATA_SETS[name]
    asked = _ended(data_set, question)
    prompt = data_set.prompt.render(asked, shots=shots)
    return replace(asked, extra={**asked.extra, "dataset": name, "prompt": prompt})


# -- Rows ------------------------------------------------------------------------------


def _pools(data_set: DataSet, file: Path | None) -> tuple[Pool, Pool]:
    """Return the questions to ask and those to show; one pool may serve for both."""
    if file is not None and file.suffix != ".json":
        pool = _answered(read_questions(file))
        return pool, pool
    asked = _questions(data_set, file, data_set.asked)
    if data_set.share is not None:
        return _divided(asked, data_set.share, seed=data_set.seed)
    if data_set.shown is None:
        return asked, asked
    return asked, _questions(data_set, file, data_set.shown)


def _answered(questions: Iterable[Question]) -> Pool:
    return [one for one in questions if any(map(str.strip, one.answers or ()))]


def _questions(data_set: DataSet, file: Path | None, split: str) -> Pool:
    rows = _from_hub(data_set, split) if file is None else _from_file(file, split)
    try:
        fields = [data_set.fields(row) for row in rows]
    except (KeyError, TypeError) as error:
        msg = f"expected rows as on the hub ({data_set.hub}): {error!r}"
        raise InputError(msg) from error
    wanted = [one for one in fields if str(one["question"]).strip()]
    unique = {one.id: one for one in map(Question.from_dict, wanted)}
    return _answered(unique.values())


def _divided(pool: Pool, share: float, *, seed: int) -> tuple[Pool, Pool]:
    """Return a share and the rest, as ``train_test_split`` of ``datasets`` does."""
    order = np.random.default_rng(seed).permutation(len(pool)).tolist()
    size = math.ceil(share * len(pool))
    return [pool[at] for at in order[:size]], [pool[at] for at in order[size:]]


def _from_file(file: Path, split: str) -> Table:
    try:
        rows: Table = json.loads(file.read_bytes())[split]
    except (KeyError, TypeError, ValueError) as error:
        msg = f"expected {file} to be JSON with a list of rows as {split!r}"
        raise InputError(msg) from error
    return rows


def _from_hub(data_set: DataSet, split: str) -> Table:
    if data_set.hub is None:
        msg = "BioASQ is given out by its owners to those who ask: name it with --file"
        raise ConfigurationError(msg)
    load_dataset: Any = import_module("datasets").load_dataset
    # Only as a stream is one split read without the others: WMT14 has gigabytes.
    options: dict[str, Any] = {
        "split": split,
        "streaming": data_set.shown is None and data_set.share is None,
    }
    parts = [data_set.hub, data_set.config]
    try:
        return [*load_dataset(*parts, **options)]
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
    return [*load_dataset(*parts, revision=_PARQUET, **options)]
