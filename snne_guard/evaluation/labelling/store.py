"""The file of labels, open for one process to append to."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from snne_guard.evaluation.labelling.labels import Label, Labels, is_label
from snne_guard.evaluation.recording.append import AppendFile

__all__ = ["LabelStore"]


class LabelStore:
    """A file of labels that is only ever appended to, held by one process.

    A label is on the disk before ``add`` returns. A run that was killed while it wrote
    leaves a part of a line, which is cut off and kept with the ending ``.torn``.

    Args:
        path: The labels; created where there are none.

    Attributes:
        labels: What was said so far, the last word on each answer.
        torn: Bytes of a line that were cut off when it was opened.

    Raises:
        ConfigurationError: Another process writes it, or it is no regular file.
        InputError: A line is no label.
        OSError: It cannot be read or written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.labels.jsonl"
        ...     with LabelStore(path) as store:
        ...         store.add(Label(id="1", label=1, answer="0123"))
        ...     Labels.read(path).by_id["1"].label
        1
    """

    def __init__(self, path: Path, /) -> None:
        self._file = AppendFile(path)
        try:
            self.torn = self._file.mend(
                is_label, backup=path.with_name(f"{path.name}.torn")
            )
            read = Labels.parse(self._file.lines(), path=path)
        except BaseException:
            self._file.close()
            raise
        self._by_id = dict(read.by_id)
        self.labels = Labels(by_id=self._by_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, label: Label, /) -> None:
        """Write a label; the one that its answer had before counts no more.

        Raises:
            OSError: It cannot be written; the file then ends with a whole line.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        label = replace(label, at=label.at or now)
        self._file.append(json.dumps(asdict(label)).encode() + b"\n")
        self._file.sync()
        self._by_id[label.id] = label
