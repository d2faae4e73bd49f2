"""Labels that people gave: what one is, where they are kept, and whose answer it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, cast, get_args

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.fields import (
    identifier,
    optional,
    text,
    zero_or_one,
)
from snne_guard.evaluation.recording.lines import decode
from snne_guard.evaluation.recording.recordings import Recording

__all__ = [
    "HAND",
    "LABEL_ORDER",
    "Label",
    "Labels",
    "Order",
    "answer_digest",
    "is_label",
    "labels_path",
]

HAND = "hand"
"""What the grader of labels that were given by a person is called."""

LABEL_ORDER = "label_order"
"""The field beside ``label`` in a recording that says how it was picked."""

Order = Literal["random", "hardest_first"]
"""How answers were picked to be labelled."""


def labels_path(recording: str | os.PathLike[str], /) -> Path:
    """Return where the labels of a recording are kept: a file beside it.

    Example:
        >>> labels_path("answers.jsonl").name
        'answers.labels.jsonl'
    """
    path = Path(recording)
    return path.with_name(f"{path.stem}.labels{path.suffix or '.jsonl'}")


def answer_digest(recording: Recording, /) -> str:
    """Return what tells an answer to a question from any other, and shows neither."""
    digest = blake2b(digest_size=16)
    for part in (recording.question, recording.context, recording.main_answer):
        content = (part or "").encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person said of one delivered answer.

    Attributes:
        id: Of the recording.
        label: 1 right, 0 wrong, None where the person passed it over.
        answer: ``answer_digest`` of what was shown.
        order: How it was picked.
        seed: Of the random order.
        at: When, in ISO 8601.
    """

    id: str
    label: Literal[0, 1] | None
    answer: str
    order: Order = "random"
    seed: int = 0
    at: str = ""

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], /) -> Label:
        """Check the fields of a JSON object and return them as a label.

        Raises:
            InputError: A field is missing or of another kind than it must be.
        """
        for name in ("id", "label", "answer", "order"):
            if name not in fields:
                msg = f'expected a field "{name}"'
                raise InputError(msg)
        order = text(fields, "order")
        if order not in get_args(Order):
            msg = f'expected "order" to be one of {[*get_args(Order)]}, got {order!r}'
            raise InputError(msg)
        seed = fields.get("seed", 0)
        if not isinstance(seed, int):
            msg = 'expected "seed" to be a whole number'
            raise InputError(msg)
        return cls(
            id=identifier(fields, "id"),
            label=optional(zero_or_one, fields, "label"),
            answer=text(fields, "answer"),
            order=cast("Order", order),
            seed=seed,
            at=str(fields.get("at", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a recording, the last one of each answer.

    Attributes:
        by_id: They, under the ids of their recordings, in the order in which these
            were first labelled.

    Example:
        >>> row = Recording(id="1", question="2+2?", main_answer="4", samples=("4",))
        >>> said = Label(id="1", label=1, answer=answer_digest(row))
        >>> Labels(by_id={"1": said}).on(row).label
        1
    """

    by_id: Mapping[str, Label] = field(default_factory=dict[str, Label])

    @classmethod
    def read(cls, path: str | os.PathLike[str], /) -> Labels:
        """Read a file of labels; one that is not there has none.

        A last line that was not finished when its writer was killed is passed over.

        Raises:
            InputError: A line is no label; the message has its number.
            OSError: The file cannot be read.
        """
        if not Path(path).exists():
            return cls()
        lines = Path(path).read_bytes().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n") and not is_label(lines[-1]):
            lines.pop()
        return cls.parse(lines, path=path)

    @classmethod
    def parse(cls, lines: Iterable[bytes], *, path: object) -> Labels:
        """Read labels from lines of bytes, of a file of that name.

        Raises:
            InputError: A line is no label; the message has its number.
        """
        found: dict[str, Label] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                label = Label.from_dict(decode(line))
            except InputError as error:
                msg = f"{path}, line {number}, is no label: {error}"
                raise InputError(msg) from error
            found[label.id] = label
        return cls(by_id=found)

    def of(self, recording: Recording, /) -> Label | None:
        """Return what was said of this very answer, None if nothing was."""
        label = self.by_id.get(recording.id)
        if label is None or label.answer != answer_digest(recording):
            return None
        return label

    def on(self, recording: Recording, /) -> Recording:
        """Return a recording with the label that a person gave; else as it is."""
        label = self.of(recording)
        if label is None or label.label is None:
            return recording
        return replace(recording, label=label.label)


def is_label(line: bytes) -> bool:
    """Return whether a line, with or without its end, is a whole label."""
    with suppress(InputError):
        return bool(Label.from_dict(decode(line)).id)
    return False
