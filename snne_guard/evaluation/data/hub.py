"""The rows of a data set: from the Hugging Face hub, or from what is on this disk."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.evaluation.data.datasets import Dataset

__all__ = ["Rows", "Splits", "splits"]

_PARQUET = "refs/convert/parquet"
"""Where the hub keeps the tables of a data set that is a program."""


class Rows:
    """Rows of one split, or some of them, read where they are needed.

    Args:
        table: The split.
        places: Which rows of it, None for all.
    """

    def __init__(self, table: Any, places: Sequence[int] | None = None) -> None:  # noqa: ANN401
        self.table = table
        self.places = range(len(table)) if places is None else places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: int) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.table[int(self.places[place])])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Go through all of them, which is quicker than one by one."""
        whole = isinstance(self.places, range)
        return iter(self.table) if whole else map(self.__getitem__, range(len(self)))

    def divided(self, share: float, *, seed: int) -> tuple[Rows, Rows]:
        """Return a share of the rows and the rest, as ``train_test_split`` does."""
        order = np.random.default_rng(seed).permutation(len(self))
        size = math.ceil(share * len(self))
        chosen, rest = order[:size].tolist(), order[size:].tolist()
        return Rows(self.table, chosen), Rows(self.table, rest)


class Splits(NamedTuple):
    """The splits of a data set.

    Attributes:
        get: The rows of a split, by its name.
        one: Whether there is one split only, which has every name.
    """

    get: Callable[[str], Rows]
    one: bool = False


def splits(dataset: Dataset, path: Path | None) -> Splits:
    """Return the splits of a data set, from the hub where there is no path.

    Args:
        dataset: The data set.
        path: A folder of ``save_to_disk``, or a file of JSON: a list of rows, or an
            object with a list for each split.

    Raises:
        ConfigurationError: It cannot be had, or it is something else.
        InputError: The file is something else.
        MissingExtraError: The package ``datasets`` is not installed.
        OSError: The file cannot be read.
    """
    if path is None:
        return Splits(partial(_from_hub, dataset))
    found = _folder(path) if path.is_dir() else _json(path)

    def get(split: str) -> Rows:
        table = found
        if isinstance(found, dict):
            named = cast("dict[str, Any]", found)
            if split not in named:
                msg = f"expected a split {split!r} in {path}, got {sorted(named)}"
                raise InputError(msg)
            table = named[split]
        return _checked(dataset, table, f"{path}, {split},")

    return Splits(get, one=not isinstance(found, dict))


def _from_hub(dataset: Dataset, split: str) -> Rows:
    if dataset.hub is None:
        msg = (
            f"{dataset.name} is not on the hub, since its owner gives it out to those "
            "who ask; give the file that you got from there"
        )
        raise ConfigurationError(msg)
    library = _library()
    # The package fetches all splits of a data set, gigabytes for WMT14, unless it is
    # told to stream; what comes as a stream is not kept for the next time.
    alone = dataset.shown is None and dataset.share is None
    streamed = alone and not library.config.HF_HUB_OFFLINE
    load = partial(
        library.load_dataset,
        dataset.hub,
        dataset.config,
        split=split,
        streaming=streamed,
    )
    try:
        try:
            table = load()
        except RuntimeError as error:
            if "scripts are no longer supported" not in str(error):
                raise
            table = load(revision=_PARQUET)
        if streamed:
            table = [*table]
    except Exception as error:
        msg = (
            f"{dataset.name} cannot be had from the Hugging Face hub as "
            f"{dataset.hub!r} ({type(error).__name__}: {error}); give a file or "
            "folder of yours instead"
        )
        raise ConfigurationError(msg) from error
    return _checked(dataset, table, f"{dataset.hub}, {split},")


def _folder(path: Path) -> Any:  # noqa: ANN401 - a split or a dict of them
    library = _library()
    try:
        return library.load_from_disk(str(path))
    except (OSError, ValueError) as error:
        msg = f"expected what save_to_disk of `datasets` writes in {path}: {error}"
        raise InputError(msg) from error


def _json(path: Path) -> Any:  # noqa: ANN401 - a split or a dict of them
    try:
        found: object = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        msg = f"expected {path} to be JSON: {error}"
        raise InputError(msg) from error
    if not isinstance(found, list | dict):
        msg = f"expected {path} to hold a list or an object of lists"
        raise InputError(msg)
    return cast("list[Any] | dict[str, Any]", found)


def _library() -> Any:  # noqa: ANN401 - untyped enough
    try:
        return import_module("datasets")
    except ImportError as error:
        needed = f"{error.name or 'datasets'} (for data sets of the Hugging Face hub)"
        raise MissingExtraError(needed, extra="eval") from error


def _checked(dataset: Dataset, table: Any, where: str) -> Rows:  # noqa: ANN401
    wanted = set(dataset.columns)
    if not hasattr(table, "select_columns"):
        rows = _objects(table, wanted)
        if rows or table == []:
            return Rows(rows)
        got = "none"
    else:
        names: list[str] = table.column_names
        if wanted <= set(names):
            return Rows(table.select_columns(list(dataset.columns)))
        got = str(names)
    msg = (
        f"expected {where} to have rows with the columns {list(dataset.columns)} of "
        f"{dataset.name}, got {got}"
    )
    raise InputError(msg)


def _objects(rows: object, columns: set[str]) -> list[dict[str, Any]]:
    """Return those of a list of JSON that are objects with all the columns."""
    if not isinstance(rows, list):
        return []
    read = [
        cast("dict[str, Any]", row)
        for row in cast("list[object]", rows)
        if isinstance(row, dict)
    ]
    return [row for row in read if columns <= row.keys()]
