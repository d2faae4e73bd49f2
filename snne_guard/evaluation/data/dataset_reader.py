"""Questions of one of the paper's data sets, each with the prompt that goes with it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from snne_guard.errors import InputError
from snne_guard.evaluation.data.datasets import Dataset, dataset_named
from snne_guard.evaluation.data.hub import Rows, splits
from snne_guard.evaluation.recording.lines import BadLine
from snne_guard.evaluation.recording.questions import Question, read_questions

__all__ = ["read_dataset"]


def read_dataset(
    dataset: str | Dataset,
    /,
    *,
    path: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    n_shots: int | None = None,
    seed: int | None = None,
    strict: bool = False,
) -> Iterator[tuple[int, Question | BadLine]]:
    """Choose questions of a data set and put them as the paper does.

    The same questions come in the same order whenever it is called, and with a larger
    ``limit`` the ones of a smaller one come first. ``Question.prompt`` is the prompt
    with its shots; the fields ``dataset`` and ``prompt`` say so in a recording.

    Args:
        dataset: A key of ``DATASETS``, or one of your own.
        path: Where it is on this machine, in place of the Hugging Face hub: a folder
            of ``save_to_disk`` with the columns of the hub; a file of questions, one
            JSON object a line, of which the shots are taken first and the others are
            asked; or for BioASQ the ``.json`` that its owner gives out.
        limit: Questions wanted; None for as many as the paper takes, 400.
        n_shots: Questions shown with their answers; None for as many as in the paper.
        seed: Which ones are shown and asked; None for the seed of the paper.
        strict: Whether the first bad line of a file ends the reading.

    Yields:
        The number of the line or row, from 1, and the question, or what is wrong
        with the line. Bad lines come first.

    Raises:
        ConfigurationError: There is no such data set, or it cannot be had.
        InputError: There are fewer questions with answers than shots; columns are
            missing; with ``strict``, a line is bad.
        MissingExtraError: The package ``datasets`` is not installed.
        OSError: The file cannot be read.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "a.jsonl"
        ...     _ = path.write_text('{"question": "who sang it"}')
        ...     [(_, question)] = read_dataset("nq_open", path=path, n_shots=0)
        >>> print(question.prompt)
        Answer the following question as briefly as possible.
        Question: who sang it?
        Answer:
    """
    chosen = dataset_named(dataset)
    n_shots = chosen.n_shots if n_shots is None else n_shots
    seed = chosen.seed if seed is None else seed
    asked, shown, bad = _pools(
        chosen,
        None if path is None else Path(path),
        with_shots=n_shots > 0,
        seed=seed,
        strict=strict,
    )
    yield from bad
    shots = _sample(shown.answered(), n_shots, seed=seed)
    examples = [_put(chosen, question) for _, question in map(shown.at, shots)]
    taken = set(shots) if shown is asked else set[int]()
    every = asked.answered() if chosen.answerable else range(len(asked))
    places = [place for place in every if place not in taken]
    wanted = chosen.n_questions if limit is None else limit
    seen: set[str] = set()
    for place in _order(places, chosen.n_questions, seed=seed):
        if len(seen) >= wanted:
            return
        try:
            number, question = asked.at(place)
        except InputError:  # a row without a text
            continue
        if question.id not in seen:
            seen.add(question.id)
            yield number, _put(chosen, question, examples)


class _Pool:
    """Questions of which some are taken.

    Args:
        size: How many there are.
        at: The number of a line or row and its question, by place; raises InputError
            where it is none.
        answered: The places of those with an answer.
    """

    def __init__(
        self,
        size: int,
        at: Callable[[int], tuple[int, Question]],
        answered: Callable[[], Sequence[int]],
    ) -> None:
        self._size, self.at, self.answered = size, at, answered

    def __len__(self) -> int:
        return self._size


def _pools(
    dataset: Dataset, path: Path | None, *, with_shots: bool, seed: int, strict: bool
) -> tuple[_Pool, _Pool, list[tuple[int, BadLine]]]:
    """Return what can be asked, what can be shown, and the lines that are neither."""
    if path is not None and not path.is_dir() and path.suffix != ".json":
        pool, bad = _lines(path, strict=strict)
        return pool, pool, bad
    get, one = splits(dataset, path)
    asked = get(dataset.asked)
    if dataset.share is not None:
        asked, rest = asked.divided(dataset.share, seed=seed)
        return _table(dataset, asked), _table(dataset, rest), []
    pool = _table(dataset, asked)
    if one or dataset.shown is None or not with_shots:
        return pool, pool, []
    return pool, _table(dataset, get(dataset.shown)), []


def _lines(path: Path, *, strict: bool) -> tuple[_Pool, list[tuple[int, BadLine]]]:
    bad: list[tuple[int, BadLine]] = []
    good: list[tuple[int, Question]] = []
    for number, row in read_questions(path, strict=strict):
        if isinstance(row, BadLine):
            bad.append((number, row))
        else:
            good.append((number, row))
    answered = [place for place, (_, row) in enumerate(good) if _is_answered(row)]
    return _Pool(len(good), good.__getitem__, lambda: answered), bad


def _table(dataset: Dataset, rows: Rows) -> _Pool:
    def at(place: int) -> tuple[int, Question]:
        fields = dataset.fields(rows[place])
        return rows.places[place] + 1, Question.from_dict(fields)

    def answered() -> Sequence[int]:
        if not dataset.answerable:
            return range(len(rows))  # all of them, so none needs to be looked at
        return [
            place for place, row in enumerate(rows) if dataset.fields(row)["answers"]
        ]

    return _Pool(len(rows), at, answered)


def _is_answered(question: Question) -> bool:
    return any(answer.strip() for answer in question.answers or ())


def _sample(places: Sequence[int], size: int, *, seed: int) -> list[int]:
    if len(places) < size:
        msg = (
            f"expected at least {size} questions with answers, to be shown before each "
            f"one that is asked, got {len(places)}; have fewer shown"
        )
        raise InputError(msg)
    # The authors' draw, so that their rows in the same order give their shots.
    return random.Random(seed).sample(places, size)  # noqa: S311 - no secret


def _order(places: Sequence[int], size: int, *, seed: int) -> Iterator[int]:
    """Yield as many places as the paper takes, then the others, all in chance order."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    first = chance.sample(places, min(size, len(places)))
    yield from first
    rest = sorted(set(places) - set(first))
    chance.shuffle(rest)
    yield from rest


def _put(
    dataset: Dataset, question: Question, shots: Sequence[Question] = ()
) -> Question:
    """Return a question as the data set has it, with its prompt."""
    text = question.text
    if not text.endswith(dataset.ends_in):
        text += dataset.ends_in
    context = question.context if dataset.prompt.context else None
    put = replace(question, text=text, context=context)
    prompt = dataset.prompt.render(put, shots=shots)
    own = {"question": text, "dataset": dataset.name, "prompt": prompt}
    fields = {**question.fields, **own}
    if context is None:
        fields.pop("context", None)  # a recording says what the model was given
    return replace(put, fields=fields, shown=prompt)
