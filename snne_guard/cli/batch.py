"""``snne-guard record --batch``: through a provider's batches, at half the price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import typer

from snne_guard.cli.console import note
from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.evaluation.batch import Exchanges, record_in_batches, replay
from snne_guard.evaluation.jsonl import digest
from snne_guard.evaluation.record import RecordingRun
from snne_guard.evaluation.recordings import Question
from snne_guard.text import without_secrets
from snne_guard.types import Assessment

if TYPE_CHECKING:
    import openai

    from snne_guard.langchain import SNNEGuard

__all__ = ["record_by_batch"]


def record_by_batch(
    guard: SNNEGuard, run: RecordingRun, *, messages: Sequence[tuple[str, str]]
) -> None:
    """Record what is left of a run through OpenAI's batches.

    Args:
        guard: Stands around a ``ChatOpenAI``.
        run: The questions, and where to write; settings, path and shard tell one run
            from another.
        messages: What is said before each question.

    Raises:
        ConfigurationError: No key is set.
        MissingExtraError: The openai package is older than version 3.
    """
    from snne_guard.sampling.langchain.wrappers import models_in

    try:
        import httpx2
        import openai

        from snne_guard.evaluation.batch_api import BatchApi, ReplayTransport
    except ModuleNotFoundError as error:
        # What batches need came with version 3 of the openai package.
        name, newer = error.name or "openai", 'pip install "openai>=3"'
        raise MissingExtraError(name, extra="openai", command=newer) from error

    chat: Any = models_in(guard.guarded)[0]
    client: openai.OpenAI | None = chat.root_client
    if client is None:
        msg = "expected a key in OPENAI_API_KEY, but it is not set"
        raise ConfigurationError(msg)
    tag = digest(run.settings, str(run.path.resolve()), run.shard)
    with TemporaryFile() as stream:
        exchanges = Exchanges(stream, run)
        http = openai.DefaultHttpxClient(transport=ReplayTransport(exchanges))
        replaying = client.with_options(http_client=http, max_retries=0)
        try:
            record_in_batches(
                run,
                _assess_with(replaying, guard, exchanges, messages),
                exchanges=exchanges,
                batches=BatchApi(client, run=tag, tell=note),
            )
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            kind, why = type(error).__name__, without_secrets(str(error))
            note(f"the provider failed: {kind}: {why}; the same command goes on")
            raise typer.Exit(1) from None


def _assess_with(
    client: openai.OpenAI,
    guard: SNNEGuard,
    exchanges: Exchanges,
    before: Sequence[tuple[str, str]],
) -> Callable[[Question], Assessment | None]:
    """Return what draws a question by a client whose replies come from batches."""
    from langchain_core.messages import convert_to_messages

    from snne_guard.langchain.calls import prepare
    from snne_guard.sampling.langchain.wrappers import rebuild

    clients = {"root_client": client, "client": client.chat.completions}
    options = {
        "guarded": rebuild(guard.guarded, lambda chat: chat.model_copy(update=clients)),
        # In a batch nothing is saved by samples that wait for the answer.
        "schedule": "concurrent",
        # What one call learns of the provider would change what the next one asks.
        "shared": None,
    }

    def assess(question: Question) -> Assessment | None:
        messages = convert_to_messages([*before, ("human", question.prompt)])
        call, sender, _ = prepare(guard.model_copy(update=options), messages)
        outcome = replay(call, sender, exchanges)
        return None if outcome is None else outcome.assessed()

    return assess
