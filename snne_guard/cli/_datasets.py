"""What ``--dataset`` means for a run of ``snne-guard record``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from snne_guard.cli._drawing import DrawSettings
from snne_guard.cli._files import open_input, refuse_same_file
from snne_guard.cli._questions import ChosenQuestions, Questions, StreamedQuestions
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Dataset, dataset_named, read_dataset
from snne_guard.evaluation.recording.store import failed_path

__all__ = ["Source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the questions come from.

    Attributes:
        questions: The user's file of questions, ``-`` for standard input.
        dataset: Name of a data set of the paper; one of the two is None.
        file: Where the data set is on this machine, None for the hub.
        seed: Which questions are shown and asked, None for the paper's seed.
        shots: How many are shown, None for as many as in the paper.

    Raises:
        ConfigurationError: If options are missing, contradict one another, or name a
            data set that is not there.
    """

    questions: str | None
    dataset: str | None
    file: Path | None
    seed: int | None
    shots: int | None

    def __post_init__(self) -> None:
        if self.dataset is not None:
            dataset_named(self.dataset)
            if self.questions is not None:
                msg = (
                    "expected QUESTIONS.jsonl or --dataset, got both; --dataset-file "
                    "says where the data set is"
                )
                raise ConfigurationError(msg)
        elif (self.file, self.seed, self.shots) != (None, None, None):
            msg = "--dataset-file, --dataset-seed and --shots need --dataset"
            raise ConfigurationError(msg)
        elif self.questions is None:
            msg = "expected QUESTIONS.jsonl, or --dataset and the name of a data set"
            raise ConfigurationError(msg)

    def complete(self, settings: DrawSettings) -> DrawSettings:
        """Return the settings with those of the data set where none was given."""
        if self.dataset is None:
            return settings
        own = dataset_named(self.dataset)
        limit, warmth = settings.max_tokens, settings.answer_temperature
        return replace(
            settings,
            max_tokens=own.max_tokens if limit is None else limit,
            answer_temperature=own.answer_temperature if warmth is None else warmth,
            stop=own.stop if settings.stop is None else settings.stop,
            dataset={
                "name": own.name,
                "shots": own.n_shots if self.shots is None else self.shots,
                "seed": own.seed if self.seed is None else self.seed,
            },
        )

    @contextmanager
    def open(
        self, *, output: Path, limit: int | None, console: Console
    ) -> Generator[Questions]:
        """Open the questions, and refuse to write over them.

        Args:
            output: The recording.
            limit: Take so many questions only.
            console: Where to say that a data set is being read.

        Raises:
            ConfigurationError: If the output is the input, or a data set cannot be had.
            InputError: If a data set is not what its name says.
            MissingExtraError: If the package ``datasets`` is needed and not there.
            OSError: If a file cannot be read.
        """
        name = self.questions
        if self.dataset is not None:
            name = None if self.file is None or self.file.is_dir() else str(self.file)
        if name is None:
            yield self._chosen(limit, console)
            return
        with open_input(name) as (stream, size):
            for path in (output, failed_path(output)):
                refuse_same_file(stream, path)
            if self.dataset is None:
                yield StreamedQuestions(stream, rewinds=size is not None, limit=limit)
            else:
                yield self._chosen(limit, console)

    def _chosen(self, limit: int | None, console: Console) -> Questions:
        dataset: Dataset = dataset_named(self.dataset or "")
        with console.status(f"reading {dataset.name}"):
            return ChosenQuestions(
                read_dataset(
                    dataset,
                    path=self.file,
                    limit=limit,
                    n_shots=self.shots,
                    seed=self.seed,
                )
            )
