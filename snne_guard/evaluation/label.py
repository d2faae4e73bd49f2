"""Labels that people give to recorded answers, kept in a file beside the recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import read_objects, whole_lines
from snne_guard.evaluation.recordings import Recording, Verdict, read_recordings
from snne_guard.files import first_problem

__all__ = [
    "answer_digest",
    "labels_path",
    "random_order",
    "read_labelled",
    "read_labels",
]


def labels_path(recording: str | os.PathLike[str], /) -> Path:
    """Return where the labels of a recording are kept: a file beside it.

    Example:
        >>> labels_path("answers.jsonl").name
        'answers.labels.jsonl'
    """
    path = Path(recording)
    return path.with_name(f"{path.stem}.labels{path.suffix or '.jsonl'}")


def answer_digest(recording: Recording, /) -> str:
    """Return a hash of id, question, context and answer, which shows none of them.

    A label counts only for the very answer that was shown: it does not carry over to a
    recording that was drawn anew.
    """
    row = recording
    digest = blake2b(digest_size=16)
    for part in (row.id, row.question, row.context, row.main_answer):
        content = (part or "").encode()
        digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()


def read_labels(path: str | os.PathLike[str], /) -> dict[str, int]:
    """Read a file of labels; one that is not there has none.

    Each line has the ``answer_digest`` of an answer, and 1 if a person calls it right,
    0 if wrong. An unfinished last line, which a killed process left, is passed over.

    Returns:
        The last label of each answer, by its digest.

    Raises:
        InputError: A line is no label; the message names file and line.
        OSError: The file cannot be read.
    """
    if not Path(path).exists():
        return {}
    with Path(path).open("rb") as lines:
        return dict(read_objects(whole_lines(lines), _label, name=os.fspath(path)))


def read_labelled(path: str | os.PathLike[str], /) -> Iterator[Recording]:
    """Yield recordings with the labels from the file beside them, if there is one.

    Raises:
        InputError: A line is no recording or no label.
        OSError: A file cannot be read.
    """
    labels = read_labels(labels_path(path))
    for recording in read_recordings(path):
        label = labels.get(answer_digest(recording))
        yield recording if label is None else replace(recording, label=label)


def random_order(recordings: Iterable[Recording], /) -> list[Recording]:
    """Return recordings in an order that has nothing to do with what they say.

    It goes by a hash of the id. So those that are labelled when somebody stops are a
    random sample of all, the next day brings the same order, and recordings that were
    added since fall in anywhere.
    """

    def place(recording: Recording) -> bytes:
        return blake2b(recording.id.encode(), digest_size=16).digest()

    return sorted(recordings, key=place)


class _Line(BaseModel):
    answer: str
    label: Verdict


def _label(row: Mapping[str, Any]) -> tuple[str, int]:
    try:
        line = _Line.model_validate(row)
    except ValidationError as error:
        msg = f"expected a label; {first_problem(error)}"
        raise InputError(msg) from None
    return line.answer, line.label
