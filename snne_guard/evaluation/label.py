"""Labels that people give to recorded answers, kept in a file beside the recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import read_objects, whole_lines
from snne_guard.evaluation.recordings import Recording, Verdict, read_recordings
from snne_guard.files import first_problem

__all__ = [
    "Label",
    "answer_digest",
    "is_labelled",
    "labels_path",
    "random_order",
    "read_labelled",
    "read_labels",
    "with_labels",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Whether a person calls a delivered answer right.

    Attributes:
        id: Of the recording.
        label: 1 right, 0 wrong.
        answer: ``answer_digest`` of what was shown.
    """

    id: str
    label: Verdict
    answer: str


_LABEL = TypeAdapter(Label)


def labels_path(recording: str | os.PathLike[str], /) -> Path:
    """Return where the labels of a recording are kept: a file beside it.

    Example:
        >>> labels_path("answers.jsonl").name
        'answers.labels.jsonl'
    """
    path = Path(recording)
    return path.with_name(f"{path.stem}.labels{path.suffix or '.jsonl'}")


def answer_digest(recording: Recording, /) -> str:
    """Return a hash of question, context and answer, which shows none of them.

    A label counts only for the very answer that was shown: it does not carry over to a
    recording that was drawn anew.
    """
    digest = blake2b(digest_size=16)
    for part in (recording.question, recording.context, recording.main_answer):
        content = (part or "").encode()
        digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()


def read_labels(path: str | os.PathLike[str], /) -> dict[str, Label]:
    """Read a file of labels; one that is not there has none.

    An unfinished last line, which a killed process left, is passed over.

    Returns:
        The last label of each id.

    Raises:
        InputError: A line is no label; the message names file and line.
        OSError: The file cannot be read.
    """
    if not Path(path).exists():
        return {}
    with Path(path).open("rb") as lines:
        labels = read_objects(whole_lines(lines), _label, name=os.fspath(path))
        return {label.id: label for label in labels}


def is_labelled(recording: Recording, labels: Mapping[str, Label], /) -> bool:
    """Return whether there is a label of this very answer."""
    label = labels.get(recording.id)
    return label is not None and label.answer == answer_digest(recording)


def with_labels(
    recordings: Iterable[Recording], labels: Mapping[str, Label], /
) -> Iterator[Recording]:
    """Yield recordings with the labels that people gave; they replace the field.

    Example:
        >>> row = {"id": "1", "question": "2+2?", "main_answer": "4", "samples": []}
        >>> recording = Recording.from_dict(row)
        >>> label = Label(id="1", label=1, answer=answer_digest(recording))
        >>> next(with_labels([recording], {"1": label})).label
        1
    """
    for recording in recordings:
        if is_labelled(recording, labels):
            yield replace(recording, label=labels[recording.id].label)
        else:
            yield recording


def read_labelled(path: str | os.PathLike[str], /) -> Iterator[Recording]:
    """Read recordings with the labels from the file beside them, if there is one.

    Raises:
        InputError: A line is no recording or no label.
        OSError: A file cannot be read.
    """
    return with_labels(read_recordings(path), read_labels(labels_path(path)))


def random_order(recordings: Iterable[Recording], /) -> list[Recording]:
    """Return recordings in an order that has nothing to do with what they say.

    It goes by a hash of the id. So those that are labelled when somebody stops are a
    random sample of all, the next day brings the same order, and recordings that were
    added since fall in anywhere.
    """

    def place(recording: Recording) -> bytes:
        return blake2b(recording.id.encode(), digest_size=16).digest()

    return sorted(recordings, key=place)


def _label(row: Mapping[str, Any]) -> Label:
    try:
        return _LABEL.validate_python(row)
    except ValidationError as error:
        msg = f"expected a label; {first_problem(error)}"
        raise InputError(msg) from None
