"""Recordings of shards, joined into one file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import json_line, read_objects, whole_lines
from snne_guard.evaluation.label import labels_path
from snne_guard.evaluation.record import check_same_settings, failures_path
from snne_guard.evaluation.recordings import Question, Recording
from snne_guard.files import replace_file

__all__ = ["merge_recordings"]

_SHARD = re.compile(r"[1-9]\d{0,5}/[1-9]\d{0,5}", re.ASCII)


def merge_recordings(
    parts: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    questions: Iterable[Question] | None = None,
) -> tuple[int, list[str]]:
    """Join recordings of different questions, drawn with the same settings.

    Lines are copied one by one, so only the ids have to fit in memory. The output is
    written whole or not at all.

    Args:
        parts: The recordings. Files of failures and labels that stand beside another
            part are passed over.
        output: The file to write; what was there is replaced.
        questions: What was to be recorded, to name what is missing.

    Returns:
        How many questions were written, and what is missing: ids of questions; where
        those are not known, ids of what failed beside the parts, and the shards of
        which nothing is there, such as ``"shard 3/16"``.

    Raises:
        InputError: A line is no recording, an unfinished one included, or an id is in
            two files.
        ConfigurationError: The parts were drawn with different settings.
        OSError: A file cannot be read or written.

    Example:
        >>> import tempfile
        >>> from snne_guard.evaluation import write_recordings
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = [Path(folder) / name for name in ("1.jsonl", "2.jsonl")]
        ...     for path in paths:
        ...         row = Recording(
        ...             id=path.stem, question="?", main_answer="a", samples=("b",)
        ...         )
        ...         write_recordings(path, [row])
        ...     merge_recordings(paths, Path(folder) / "all.jsonl")
        (2, [])
    """
    paths = [*dict.fromkeys(map(Path, parts))]
    beside = {*map(failures_path, paths), *map(labels_path, paths)}
    paths = [path for path in paths if path not in beside]
    wanted = None if questions is None else [question.id for question in questions]
    settings: object = None
    ids: dict[str, Path] = {}
    shards: set[str] = set()
    with replace_file(output) as stream:
        for path in paths:
            for row in read_objects(path, _recording):
                if ids:
                    check_same_settings(settings, row.get("settings"), name=path)
                settings = row.get("settings")
                drawn = row.get("drawn")
                shards.add(str(drawn.get("shard") if isinstance(drawn, dict) else None))
                key = str(row["id"])
                if key in ids:
                    msg = f"id {key!r} is in {ids[key]} and again in {path}"
                    raise InputError(msg)
                ids[key] = path
                stream.write(json_line(row))
    shards_left: list[str] = []
    if wanted is None:
        wanted, shards_left = [*dict.fromkeys(_failed(paths))], [*_shards_left(shards)]
    return len(ids), [*shards_left, *(name for name in wanted if name not in ids)]


def _recording(row: dict[str, Any]) -> dict[str, Any]:
    """Check that a line is a recording, and return it untouched."""
    Recording.from_dict(row)
    return row


def _failed(parts: Iterable[Path]) -> Iterator[str]:
    """Yield the ids of the questions that have failed, some of them recorded since."""
    for path in filter(Path.exists, map(failures_path, parts)):
        with path.open("rb") as lines:
            for row in read_objects(whole_lines(lines), dict, name=str(path)):
                yield str(row.get("id"))


def _shards_left(shards: set[str]) -> Iterator[str]:
    """Yield the shards of which nothing is recorded."""
    totals = {int(name.partition("/")[2]) for name in shards if _SHARD.fullmatch(name)}
    named = (f"{k}/{n}" for n in sorted(totals) for k in range(1, n + 1))
    return (f"shard {name}" for name in named if name not in shards)
