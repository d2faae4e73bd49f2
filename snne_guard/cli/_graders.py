"""Which grader an option of a command names: an LLM as judge is set up here."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from snne_guard.cli._console import failure, note
from snne_guard.cli._models import chat_model
from snne_guard.evaluation import Grader, JudgeGrader

__all__ = ["named_grader", "tell_judges"]

_JUDGE = "judge"


def named_grader(name: str, *, base_url: str | None = None) -> str | Grader:
    """Return the judge that a name means; every other name is for the library.

    Args:
        name: ``judge:`` and a model as ``--model`` takes it, or another grader's.
        base_url: Where the model is served.

    Raises:
        typer.Exit: The model cannot be set up; why is on standard error.
    """
    kind, _, model = name.partition(":")
    if kind != _JUDGE:
        return name
    if not model:
        told = f"expected a model behind the grader {name!r}, as judge:openai:NAME"
        raise failure(told)
    from snne_guard.langchain.generate import ChatGenerate

    console = Console(stderr=True)
    asked = chat_model(model, base_url=base_url, seed=None, console=console)
    return JudgeGrader(ChatGenerate(asked.bind(temperature=0), name=model))


def tell_judges(graders: Iterable[object], /) -> None:
    """Say how often each judge among graders was asked, and left an answer open."""
    for grader in graders:
        if isinstance(grader, JudgeGrader):
            note(
                f"{grader.name} was asked {grader.calls} times; {grader.unclear} "
                f"verdicts were unclear, {grader.failed} requests failed"
            )
