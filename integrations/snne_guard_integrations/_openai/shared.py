"""What the twins of a guarded client share: the settings, what comes of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai

from snne_guard import Assessment, ConfigurationError, SnneGuardError
from snne_guard_integrations._openai.answers import attached, refused, said, stripped
from snne_guard_integrations._openai.parts import parts_of
from snne_guard_integrations._openai.requests import Post

__all__ = ["Delivery", "Fallback", "Settled", "is_stream", "marked"]

Fallback = str | Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a call comes to; where nothing is delivered, without any of the answer.

    Attributes:
        record: The assessment, as the answer carries it.
        parts: What is delivered: one object, or the rest of a stream. None where
            somebody else is to answer.
        error: What is raised instead.
    """

    record: dict[str, Any] = field(default_factory=dict[str, Any])
    parts: Sequence[Any] | None = None
    error: SnneGuardError | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """How decisions are carried out.

    Attributes:
        fallback: Who answers instead: another model's name, a function, or nobody.
        refusal: What the application shows instead.
    """

    fallback: Fallback | None
    refusal: str

    def settled(
        self,
        post: Post,
        assessment: Assessment,
        error: SnneGuardError | None,
        parts: Sequence[Any],
        *,
        strip: bool,
    ) -> Settled:
        """Return what a decision leads to.

        Args:
            post: What was asked.
            assessment: What was found.
            error: What is to be raised instead of the answer.
            parts: The answer, or what is left of its stream.
            strip: Whether its log-probabilities were asked for by the guard alone.
        """
        if error is not None:
            return Settled(error=error)
        record = assessment.to_metadata()
        if assessment.decision == "fallback":
            return self._handed_over(record)
        if assessment.decision == "refuse":
            refusal = refused(post, assessment.raw, self.refusal)
            return Settled(record=record, parts=self.tagged(post, refusal, record))
        shown = [stripped(part) for part in parts] if strip else list(parts)
        return Settled(record=record, parts=marked(shown, record))

    def tagged(
        self, post: Post, answer: object, record: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return an answer that is whole as what is delivered.

        Args:
            post: What was asked.
            answer: An object of the API, or what a fallback says.
            record: The assessment.
        """
        whole = said(post, answer) if isinstance(answer, str) else answer
        return marked(list(parts_of(post, whole)) if post.stream else [whole], record)

    def asked(self, post: Post) -> Any:  # noqa: ANN401 - what the user's function gives
        """Ask the fallback that is a function, None where it is a model's name.

        Args:
            post: What was asked.
        """
        if not callable(self.fallback):
            return None
        request = post.request
        for name in ("stream", "stream_options"):
            request.pop(name, None)
        return self.fallback(request)

    def _handed_over(self, record: dict[str, Any]) -> Settled:
        if self.fallback is not None:
            return Settled(record=record)
        msg = "on_uncertain returned 'fallback', and the client has no fallback"
        return Settled(error=ConfigurationError(msg))


def is_stream(given: object) -> bool:
    """Return whether a fallback gave a stream, of either kind."""
    return isinstance(given, openai.Stream | openai.AsyncStream)


def marked(parts: list[Any], record: Mapping[str, Any]) -> list[Any]:
    """Return an answer, or the end of a stream, with the assessment on the last of it.

    Args:
        parts: One object, or the rest of a stream.
        record: The assessment.
    """
    for each in parts[-1:]:
        attached(each, record)
        if getattr(each, "response", None) is not None:  # of the event that ends it
            attached(each.response, record)
    return parts
