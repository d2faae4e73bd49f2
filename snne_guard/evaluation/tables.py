"""CSV files and data frames: read as questions and recordings, and scored."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from snne_guard.errors import InputError, MissingExtraError
from snne_guard.evaluation.jsonl import Source, digest, read_objects
from snne_guard.scorers import score

Columns = Mapping[str, Sequence[str]]
"""For fields of a line, the columns that hold them, where they have other names."""

T = TypeVar("T")


class Frame(Protocol):
    """A data frame of pandas, polars or another library that narwhals knows."""

    @property
    def columns(self) -> Any:  # noqa: ANN401 - each library has a kind of its own
        """The names of the columns."""


_LISTS = frozenset(
    {"answers", "samples", "main_logprobs", "token_logprobs", "sample_models"}
)
_EMPTY = {"question": None, "main_answer": ""}
"""Fields of which an empty cell says something."""

_OBJECTS = frozenset({"settings", "drawn"})


def read_rows(
    source: Source | Frame,
    read: Callable[[dict[str, Any]], T],
    *,
    columns: Columns | None = None,
) -> Iterator[T]:
    """Yield the value of each row of a JSONL file, CSV file or data frame.

    A row of a table without ``id`` gets a hash of its question and context, one
    without ``samples`` has none, and an empty cell says nothing. A cell of ``answers``
    or ``samples`` is one text, or a JSON list of texts.

    Args:
        source: A path, which is a CSV file if its name ends with ``.csv``; lines of
            bytes; or a data frame of pandas, polars or another library that narwhals
            knows.
        read: Turns an object into a value, or raises InputError.
        columns: The columns of fields, where they have other names; several for a list.

    Raises:
        InputError: A row is bad; the message names the source and the line.
        MissingExtraError: A frame needs narwhals, which is not installed.
    """
    rows: Iterable[tuple[int, dict[str, Any]]]
    if isinstance(source, str | os.PathLike) and str(source).lower().endswith(".csv"):
        name, rows = os.fspath(source), _csv_rows(source)
    elif isinstance(source, str | os.PathLike) or not hasattr(source, "columns"):
        if columns:
            msg = "expected a CSV file or a data frame, whose columns can be named"
            raise InputError(msg)
        yield from read_objects(source, read)
        return
    else:
        frame = _narwhals().from_native(source, eager_only=True)
        name, rows = "the frame", enumerate(frame.iter_rows(named=True), start=1)
    place = 1
    try:
        for place, row in rows:  # noqa: B007 - named in the message
            yield read(_fields(row, columns or {}))
    except (InputError, csv.Error, UnicodeDecodeError) as error:
        why = "expected UTF-8" if isinstance(error, UnicodeDecodeError) else error
        msg = f"{name}, line {place}: {why}"
        raise InputError(msg) from error


def _csv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    with Path(path).open(newline="", encoding="utf-8-sig") as stream:
        # Spreadsheets write semicolons where a comma is the decimal sign.
        delimiter = max(",;\t", key=stream.readline().count)
        stream.seek(0)
        reader = csv.DictReader(stream, delimiter=delimiter, strict=True)
        for row in reader:
            yield reader.line_num, row


def _fields(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return the fields of a recording or question that a row of a table holds."""
    if None in row:
        msg = f"expected {len(row) - 1} cells, got more"
        raise InputError(msg)
    taken = {name for names in columns.values() for name in names}
    named = {name: [name] for name in row if name not in taken} | {**columns}
    made: dict[str, Any] = {}
    for field, names in named.items():
        cells = _cells(row, names)
        if field in _LISTS:
            known = [each for each in cells if each not in (None, "")]
            if known:
                made[field] = [value for each in known for value in _values(each)]
        elif cells[0] not in (None, ""):
            made[field] = _json(cells[0]) if field in _OBJECTS else cells[0]
        elif field in _EMPTY:
            made[field] = _EMPTY[field]
    if "main_answer" in made:
        made.setdefault("samples", [])
    made.setdefault("id", f"q-{digest(made.get('question'), made.get('context'))}")
    return made


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the cells of some columns, None where one is empty."""
    missing = [name for name in names if name not in row]
    if missing:
        msg = f"expected a column {missing[0]!r}, got {', '.join(map(str, row))}"
        raise InputError(msg)
    return [_plain(row[name]) for name in names]


def _plain(value: Any) -> Any:  # noqa: ANN401 - what a cell holds
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _values(cell: Any) -> Iterable[Any]:  # noqa: ANN401 - likewise
    if isinstance(cell, str):
        return _json(cell) if cell.lstrip().startswith("[") else [cell]
    return cell if isinstance(cell, Sequence) else [cell]


def _json(cell: Any) -> Any:  # noqa: ANN401 - likewise
    if not isinstance(cell, str):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        msg = "expected JSON in a cell that begins with a bracket"
        raise InputError(msg) from None


def _narwhals() -> Any:  # noqa: ANN401 - a module
    try:
        import narwhals
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "narwhals", extra="eval") from error
    return narwhals


def score_frame(
    frame: Frame,
    /,
    *,
    answers: str | Sequence[str],
    question: str | None = None,
    **options: Any,  # noqa: ANN401 - of score
) -> Any:  # noqa: ANN401 - as the frame
    """Return a data frame with the uncertainty of each row beside its columns.

    The new columns are ``uncertainty``, ``score``, ``method``, ``n`` and ``reasons``.

    Args:
        frame: Of pandas, polars or another library that narwhals knows.
        answers: The column with the list of answers to the row's question, the
            delivered one first; or the columns with one answer each.
        question: The column with the question.
        **options: Those of ``snne_guard.score``.

    Raises:
        InputError: A row cannot be scored; the message has its number, from 1.
        MissingExtraError: narwhals is not installed.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"q": ["2+2?"], "a1": ["4"], "a2": ["4"]})
        >>> scored = score_frame(frame, answers=["a1", "a2"], question="q")
        >>> scored["uncertainty"].tolist()
        [0.0]
    """
    narwhals = _narwhals()
    data = narwhals.from_native(frame, eager_only=True)
    names = [answers] if isinstance(answers, str) else [*answers]
    found: list[tuple[Any, ...]] = []
    for place, row in enumerate(data.iter_rows(named=True), start=1):
        try:
            # A reply that is missing stays one: no other takes the answer's place.
            cells = ["" if cell is None else cell for cell in _cells(row, names)]
            texts = [text for cell in cells for text in _values(cell)]
            asked = None if question is None else _cells(row, [question])[0]
            one = score(texts, question=asked, **options)
        except InputError as error:
            msg = f"row {place}: {error}"
            raise InputError(msg) from error
        why = ", ".join(one.reasons)
        found.append((one.uncertainty, one.value, one.method, one.n, why))
    titles = ("uncertainty", "score", "method", "n", "reasons")
    columns = zip(titles, zip(*found, strict=True) if found else [()] * 5, strict=True)
    backend = data.implementation
    series = [narwhals.new_series(k, [*each], backend=backend) for k, each in columns]
    return data.with_columns(*series).to_native()


def frame_of(columns: Mapping[str, Sequence[Any]], *, backend: str) -> Any:  # noqa: ANN401
    """Return a data frame of a library, such as ``"pandas"`` or ``"polars"``."""
    try:
        made = _narwhals().from_dict({**columns}, backend=backend)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or backend, extra="eval") from error
    return made.to_native()
