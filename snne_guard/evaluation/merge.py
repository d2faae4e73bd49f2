"""Recordings of shards, joined into one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import beside, read_appended
from snne_guard.evaluation.recorded_calls import check_same_settings, how_drawn
from snne_guard.evaluation.recordings import (
    Question,
    Recording,
    read_labelled,
    write_recordings,
)


def merge_recordings(
    parts: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    questions: Iterable[Question] | None = None,
) -> tuple[int, list[str]]:
    """Join recordings of different questions, drawn with the same settings.

    Lines are read one by one, so only the ids have to fit in memory. The output is
    written whole or not at all.

    Args:
        parts: The recordings, each with the labels of the file beside it. Such files,
            and those of failures, are no parts themselves.
        output: The file to write; what was there is replaced.
        questions: What was to be recorded, to name what is missing.

    Returns:
        How many questions were written, and what is missing: the ids of questions. If
        the questions are unknown, it is the ids in the parts' files of failures, and
        the shards without any recording, such as ``"shard 3/16"``.

    Raises:
        InputError: A line is not a recording, or an id is in two files.
        ConfigurationError: The parts were drawn with different settings.
    """
    paths = [*dict.fromkeys(map(Path, parts))]
    others = {beside(path, kind) for path in paths for kind in ("failed", "labels")}
    paths = [path for path in paths if path not in others]
    wanted = None if questions is None else [question.id for question in questions]
    settings: Mapping[str, Any] | None = None
    ids: dict[str, Path] = {}
    shards: set[tuple[int, int]] = set()

    def joined() -> Iterator[Recording]:
        nonlocal settings
        for path in paths:
            for row in read_labelled(path):
                if ids:
                    check_same_settings(settings, row.settings, name=path)
                settings = row.settings
                if row.id in ids:
                    msg = f"id {row.id!r} is in {ids[row.id]} and again in {path}"
                    raise InputError(msg)
                ids[row.id] = path
                if (shard := how_drawn(row).shard) is not None:
                    k, _, n = shard.partition("/")
                    shards.add((int(k), int(n)))
                yield row

    write_recordings(output, joined())
    left: list[str] = []
    if wanted is None:
        totals = sorted({n for _, n in shards})
        every = ((k, n) for n in totals for k in range(1, n + 1))
        left = [f"shard {k}/{n}" for k, n in every if (k, n) not in shards]
        failed = [read_appended(beside(path, "failed"), dict) for path in paths]
        # Some of them may have been recorded since.
        wanted = [*dict.fromkeys(str(row.get("id")) for row in chain(*failed))]
    return len(ids), [*left, *(name for name in wanted if name not in ids)]
