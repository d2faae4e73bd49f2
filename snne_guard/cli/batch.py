"""``snne-guard record --batch``: through a provider's batches, at half the price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from snne_guard.cli.console import note
from snne_guard.engine import Request, Sender
from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.evaluation.recorder import RecordingRun
from snne_guard.evaluation.recordings import Question
from snne_guard.redaction import without_secrets

if TYPE_CHECKING:
    import openai

    from snne_guard.evaluation.batch import Prepare
    from snne_guard.langchain import SNNEGuard


def record_by_batch(
    guard: SNNEGuard, run: RecordingRun, *, messages: Sequence[tuple[str, str]]
) -> None:
    """Record what is left of a run by OpenAI's batches; the guard has a ChatOpenAI."""
    from langchain_core.messages import convert_to_messages

    from snne_guard.langchain.wrappers import rebuild

    try:
        import httpx2
        import openai

        from snne_guard.evaluation.batch import record_in_batches
    except ModuleNotFoundError as error:
        # What batches need came with version 3 of the openai package.
        name, newer = error.name or "openai", 'pip install "openai>=3"'
        raise MissingExtraError(name, extra="openai", command=newer) from error

    chat: Any = guard.guarded
    if chat.root_client is None:
        msg = "expected a key in OPENAI_API_KEY, but it is not set"
        raise ConfigurationError(msg)

    def calls(client: openai.OpenAI) -> Prepare:
        clients = {"root_client": client, "client": client.chat.completions}
        change = {
            "guarded": rebuild(guard.guarded, lambda c: c.model_copy(update=clients)),
            # In a batch nothing is saved by samples that wait for the answer.
            "schedule": "concurrent",
            # What one call learns of the provider would change what the next one asks.
            "shared": None,
        }

        def prepared(question: Question) -> tuple[Request, Sender]:
            asked = convert_to_messages([*messages, ("human", question.prompt)])
            return guard.model_copy(update=change).prepared(asked)

        return prepared

    try:
        record_in_batches(run, chat.root_client, calls=calls, tell=note)
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        kind, why = type(error).__name__, without_secrets(str(error))
        again = "run the same command again to continue"
        note(f"the provider failed: {kind}: {why}; {again}")
        raise typer.Exit(1) from None
