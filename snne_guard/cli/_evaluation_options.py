"""What ``snne-guard evaluate`` refuses before it reads a line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from snne_guard.cli._console import note
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.comparison.files import each_once as once
from snne_guard.evaluation.comparison.files import same_file
from snne_guard.evaluation.labelling.labels import labels_path

__all__ = [
    "Setting",
    "check_options",
    "check_outputs",
    "each_once",
    "labels_read",
    "names",
]

_PAPER_SIMILARITY = "rouge_l_paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is compared, and how.

    Attributes:
        similarity: Names of what compares answers word by word, None for the usual.
        tau: Temperature of the similarity's softmax.
        include_answer: Whether the delivered answer is a member of the scored set.
    """

    similarity: Sequence[str] | None
    tau: float
    include_answer: bool

    @classmethod
    def of(
        cls,
        *,
        paper: bool,
        similarity: str | None,
        tau: float | None,
        without_answer: bool,
    ) -> Setting:
        """Return the setting that the options name.

        Raises:
            ConfigurationError: ``--similarity`` names nothing, or an option says
                something else than ``--paper``.
        """
        named = None if similarity is None else names(similarity)
        if named == []:
            msg = "--similarity names nothing; leave it off for the usual"
            raise ConfigurationError(msg)
        if paper and named not in (None, [_PAPER_SIMILARITY]):
            msg = f"--paper compares by {_PAPER_SIMILARITY}; leave --similarity off"
            raise ConfigurationError(msg)
        if paper and tau not in {None, 1.0}:
            msg = f"--paper sets tau to 1, got --tau {tau:g}; leave one of them off"
            raise ConfigurationError(msg)
        return cls(
            similarity=[_PAPER_SIMILARITY] if paper else named,
            tau=1.0 if tau is None else tau,
            include_answer=not (paper or without_answer),
        )


def names(text: str) -> list[str]:
    """Return the names between commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def check_options(
    *, methods: str, regrade: bool, grader: str, cache: Path | None, no_cache: bool
) -> None:
    """Refuse options that say nothing, or contradict each other.

    Raises:
        ConfigurationError: They do.
    """
    if not names(methods):
        msg = "--methods names nothing; leave it off for all"
        raise ConfigurationError(msg)
    if regrade and grader == "label":
        msg = "--regrade puts a grader before the labels; name one with --grader"
        raise ConfigurationError(msg)
    if no_cache and cache is not None:
        msg = f"--no-cache keeps nothing, and --cache {cache} does; leave one off"
        raise ConfigurationError(msg)


def check_outputs(inputs: Sequence[str], outputs: Mapping[str, Path | None]) -> None:
    """Refuse an output that is an input or another output, or cannot be written.

    Args:
        inputs: The files that are read.
        outputs: The files to be written, under the options that name them.

    Raises:
        ConfigurationError: One is refused.
    """
    taken: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        for name in inputs:
            if same_file(path, name):
                msg = f"{option} {path} is a file that is read; name another one"
                raise ConfigurationError(msg)
        for other, earlier in taken.items():
            if same_file(path, earlier):
                msg = f"{other} and {option} name the same file, {path}"
                raise ConfigurationError(msg)
        taken[option] = os.fspath(path)
        _check_writable(option, path)


def _check_writable(option: str, path: Path) -> None:
    target = path.resolve()
    if target.exists() and not target.is_file():
        msg = f"expected {option} to be a regular file, got {path}"
        raise ConfigurationError(msg)
    if not target.parent.is_dir():
        msg = f"the folder of {option} {path} is not there"
        raise ConfigurationError(msg)
    try:
        # The file is made beside its place, and moved there when it is whole.
        with TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        msg = f"the folder of {option} {path} cannot be written to: {error.strerror}"
        raise ConfigurationError(msg) from error


def labels_read(files: Sequence[str], named: Path | None) -> list[str]:
    """Return the files of labels that are read with recordings.

    Args:
        files: The recordings.
        named: The labels of the only one, None for those beside each.
    """
    paths = [named] if named is not None else map(labels_path, files)
    return [os.fspath(path) for path in paths]


def each_once(files: Sequence[str]) -> list[str]:
    """Return each file once, and tell of those that were named again."""
    return once(
        files,
        on_again=lambda name: note(
            f"{name}: the same file is named again; it counts once"
        ),
    )
