"""Labels that people give to recorded answers, kept in a file beside the recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.jsonl import AppendFile, read_objects, whole_lines
from snne_guard.evaluation.recordings import Recording
from snne_guard.files import first_problem

__all__ = [
    "Label",
    "LabelFile",
    "answer_digest",
    "label_of",
    "labels_path",
    "labels_paths",
    "random_order",
    "read_labels",
    "with_labels",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person said of one delivered answer.

    Attributes:
        id: Of the recording.
        label: 1 right, 0 wrong, None where the person could not tell.
        answer: ``answer_digest`` of what was shown.
        at: When, in ISO 8601.
    """

    id: str
    label: Annotated[int, Field(ge=0, le=1)] | None
    answer: str
    at: str = ""


_LABEL = TypeAdapter(Label)


def labels_path(recording: str | os.PathLike[str], /) -> Path:
    """Return where the labels of a recording are kept: a file beside it.

    Example:
        >>> labels_path("answers.jsonl").name
        'answers.labels.jsonl'
    """
    path = Path(recording)
    return path.with_name(f"{path.stem}.labels{path.suffix or '.jsonl'}")


def labels_paths(
    recordings: Sequence[str | os.PathLike[str]], labels: Path | None = None
) -> list[Path]:
    """Return the file of labels of each recording: beside it, or the one named.

    Raises:
        ConfigurationError: One file is named for several recordings.
        OSError: The file that is named is not there.
    """
    if labels is None:
        return [labels_path(name) for name in recordings]
    if len(recordings) > 1:
        msg = f"expected one recording for the labels {labels}, got {len(recordings)}"
        raise ConfigurationError(msg)
    labels.stat()
    return [labels]


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
        rows = read_objects(whole_lines(lines), _label, name=os.fspath(path))
        return {one.id: one for one in rows}


def label_of(recording: Recording, labels: Mapping[str, Label], /) -> Label | None:
    """Return what was said of this very answer, None if nothing was."""
    found = labels.get(recording.id)
    if found is None or found.answer != answer_digest(recording):
        return None
    return found


def with_labels(
    recordings: Iterable[Recording], labels: Mapping[str, Label], /
) -> Iterator[Recording]:
    """Yield recordings with the labels that people gave; they replace the field.

    Example:
        >>> row = {"id": "1", "question": "2+2?", "main_answer": "4", "samples": []}
        >>> recording = Recording.from_dict(row)
        >>> said = Label(id="1", label=1, answer=answer_digest(recording))
        >>> next(with_labels([recording], {"1": said})).label
        1
    """
    for recording in recordings:
        found = label_of(recording, labels)
        if found is None or found.label is None:
            yield recording
        else:
            yield replace(recording, label=found.label)


def random_order(
    recordings: Iterable[Recording], /, *, seed: int = 0
) -> list[Recording]:
    """Return recordings in an order that has nothing to do with what they say.

    It goes by a hash of seed and id. So those that are labelled when somebody stops are
    a random sample of all, the next day brings the same order, and recordings that were
    added since fall in anywhere.
    """

    def place(recording: Recording) -> bytes:
        return blake2b(f"{seed} {recording.id}".encode(), digest_size=16).digest()

    return sorted(recordings, key=place)


class LabelFile(AppendFile):
    """A file of labels that one process appends to.

    Args:
        path: Created where there is none.

    Attributes:
        labels: The last label of each id.

    Raises:
        ConfigurationError: Another process writes the file.
        InputError: A line is no label.
        OSError: It cannot be read or written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.labels.jsonl"
        ...     with LabelFile(path) as file:
        ...         file.add(Label(id="1", label=1, answer="0123"))
        ...     read_labels(path)["1"].label
        1
    """

    def __init__(self, path: str | os.PathLike[str], /) -> None:
        super().__init__(path)
        try:
            self.labels = {one.id: one for one in self.read(_label)}
        except BaseException:
            self.close()
            raise

    def add(self, label: Label, /) -> None:
        """Write a label; it replaces the one that its answer had before.

        Raises:
            OSError: It cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        label = replace(label, at=label.at or now)
        self.append(asdict(label))
        self.labels[label.id] = label

    def counts(self, recordings: Sequence[Recording], /) -> dict[str, int]:
        """Return how many answers are right, wrong, skipped and left."""
        found = [label_of(recording, self.labels) for recording in recordings]
        said = [one.label for one in found if one is not None]
        return {
            "right": said.count(1),
            "wrong": said.count(0),
            "skipped": said.count(None),
            "left": len(found) - len(said),
        }


def _label(row: Mapping[str, Any]) -> Label:
    try:
        return _LABEL.validate_python(row)
    except ValidationError as error:
        msg = f"expected a label; {first_problem(error)}"
        raise InputError(msg) from None
