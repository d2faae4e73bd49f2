"""What asking a model from the command line shares: the prompt, progress, failures."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from snne_guard.cli._console import Bar, failure
from snne_guard.types import Assessment, SampleEvent

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = ["Arrivals", "embedded_chat", "provider_errors", "short_answers"]

_SHORT = (
    ("system", "Answer with one word or a name."),
    ("human", "What is the color of the sky?"),
    ("ai", "Blue"),
    ("human", "What is the capital of Spain?"),
    ("ai", "Madrid"),
    ("human", "Who wrote Romeo and Juliet?"),
    ("ai", "William Shakespeare"),
)
"""Shows the embedded model, which cannot be told, that answers are to be short."""


def short_answers(question: str) -> list[tuple[str, str]]:
    """Return messages that get a short answer even from a very small model."""
    return [*_SHORT, ("human", question)]


def embedded_chat(*, console: Console, seed: int | None = None) -> ChatOpenAI:
    """Return the embedded model, set up to give one line, saying that it starts.

    Args:
        console: Where to say so.
        seed: Fixes what is drawn.

    Raises:
        MissingExtraError: If a package or the model file is not installed.
    """
    with console.status("starting the embedded model (SmolLM2-135M-Instruct)"):
        from snne_guard.langchain.embedded import embedded_model

        return embedded_model(temperature=0, max_tokens=32, stop=["\n"], seed=seed)


class Arrivals(Bar):
    """An observer that shows replies as they arrive, as long as it is entered.

    On a terminal it is a bar, elsewhere a line for each request.

    Args:
        total: Replies that are asked for, the answer included.
        console: Where to show it: standard error, so that output stays clean.
    """

    def __init__(self, total: int, *, console: Console) -> None:
        self._console, self._total = console, total
        self._lock = threading.Lock()
        self._arrived = 0
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed}/{task.total} replies"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("asking", total=total)

    def on_sample_start(self, event: SampleEvent) -> None:
        """Say what was asked for."""
        what = "the answer" if event.role == "answer" else f"{event.n} more"
        self._progress.update(self._task, description=f"asking for {what}")

    def on_sample_end(self, event: SampleEvent) -> None:
        """Count what came, or say that a request failed."""
        with self._lock:
            self._arrived += len(event.samples)
            arrived = self._arrived
        self._progress.update(self._task, completed=arrived)
        if event.error is not None:
            failed = type(event.error).__name__
            self._console.print(f"a request failed: {failed}", markup=False)
        elif not self._console.is_terminal:
            told = f"{arrived} of {self._total} replies"
            self._console.print(told, highlight=False)

    def on_assessment(self, assessment: Assessment) -> None:
        """Do nothing: a guard waits for this event, and so for those before it."""


@contextmanager
def provider_errors() -> Generator[None]:
    """Turn what a provider raises into a message and exit status 1."""
    try:
        yield
    except Exception as error:
        told = f"the model failed: {type(error).__name__}: {error}"
        raise failure(told, status=1) from error
