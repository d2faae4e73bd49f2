"""What a guarded call is asked: the guard's options, its state, and the question."""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from snne_guard.engine.limiter import Limiter
from snne_guard.engine.protocol import Draw, Response
from snne_guard.engine.rejections import Rejections
from snne_guard.errors import ConfigurationError
from snne_guard.settings import GuardSettings, is_disabled
from snne_guard.similarity.content import LONG_QUESTION
from snne_guard.spans.documents import CLIENT, documents_of
from snne_guard.types import Assessment, Reply

_log = logging.getLogger(__name__)


class GuardState:
    """What the calls of one guard share: a limit, and what providers reject.

    Attributes:
        limiter: How many requests to the guarded model may be in flight, all calls
            together.
        rejections: Parameters that providers were seen to reject or ignore.
    """

    def __init__(self, limiter: Limiter | None = None) -> None:
        self.limiter = limiter or Limiter(None)
        self.rejections = Rejections()
        self._lists: dict[int, list[Assessment]] = {}
        self._of_others: dict[str, Limiter] = {}
        self._warned = False

    def limited(self, size: int | None) -> GuardState:
        """Return a state with another limit, which shares all else with this one."""
        state = copy(self)
        state.limiter, state._of_others = Limiter(size), {}  # noqa: SLF001 - our own
        return state

    def limiter_of(self, draw: Draw, /) -> Limiter:
        """Return the limiter of a request: each other model has one of its own.

        One that hangs would otherwise hold up the guarded model.
        """
        if draw.other_model is None:
            return self.limiter
        own = Limiter(self.limiter.size)
        return self._of_others.setdefault(draw.other_model, own)

    @contextmanager
    def collected(self) -> Iterator[list[Assessment]]:
        """Give a list that fills with assessments as calls end, in any thread."""
        seen: list[Assessment] = []
        self._lists[id(seen)] = seen
        try:
            yield seen
        finally:
            del self._lists[id(seen)]

    def collect(self, assessment: Assessment, /) -> None:
        """Add an assessment to every list that is open."""
        for seen in list(self._lists.values()):
            seen.append(assessment)

    def question(self, chosen: object, message: str | None, /) -> str | None:
        """Return the question that the application has chosen, else the user's message.

        If that is too long to be only a question, there is a warning, once.
        """
        if isinstance(chosen, str):
            return chosen
        if chosen is not None:
            msg = f"expected the question as a text, got {type(chosen).__name__}"
            raise ConfigurationError(msg)
        if message and len(message) >= LONG_QUESTION and not self._warned:
            self._warned = True
            _log.warning(
                "the user's message has over %d characters: if it holds more than the "
                "question, such as retrieved text, pass the question with question=",
                LONG_QUESTION,
            )
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the engine for one assessed answer.

    Attributes:
        settings: The options of the guard.
        state: What its calls share.
        parameters: What the provider is known to take of ``n``, ``logprobs`` and
            ``temperature``, before it rejects any of it.
        keys: What rejections are remembered under, one for each model that may be
            asked.
        question: What the user asks, for similarities that use it.
        tools_bound: Whether the answer may call tools on the application's behalf.
        structured: Whether calls are a form of the answer, so that they are compared:
            all, or those of these names.
        schema: Whether the answer is to fit a schema, or to be JSON.
        context: The documents that the model was given to answer from.
        side_effects: Whether a sample could act on the world, so that none is drawn.
        partial: Whether a part of the conversation stands at the provider alone, so
            that no other model is asked.
        retry: Whether failed requests are sent again; only where neither the model nor
            its client does so.
        others_retried: Names of the other models of which the same holds.
        model: Name of the guarded model, by which ``prices`` may know it.
        answer: An answer that exists already; then only samples are drawn.
        answer_settings: What the answer is drawn with (``answer_temperature``,
            ``top_p``, ``max_tokens``, ``stop``), as far as that is known.
        run_id: The LangChain run of the call.
        replayed: Whether its replies exist already, so that the options that leave a
            call unscored have no effect.
    """

    settings: GuardSettings
    state: GuardState
    parameters: frozenset[str] = frozenset()
    keys: tuple[Hashable, ...] = ()
    question: str | None = field(default=None, repr=False)
    tools_bound: bool = False
    structured: bool | frozenset[str] = False
    schema: bool = False
    context: str | None = field(default=None, repr=False)
    side_effects: bool = False
    partial: bool = False
    retry: bool = False
    others_retried: frozenset[str] = frozenset()
    model: str | None = None
    answer: Response | None = field(default=None, repr=False)
    answer_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str | None = None
    replayed: bool = False

    def calls_tools(self, reply: Reply, /) -> bool:
        """Look for a call in a reply that is no form of the answer."""
        calls, forms = reply.tool_calls, self.structured
        if calls is None or not isinstance(forms, frozenset):
            return calls is not None and not forms
        return any(call["name"] not in forms for call in json.loads(calls))


def request_of(
    messages: Sequence[Any],
    *,
    settings: GuardSettings,
    state: GuardState,
    last: str | None,
    question: object = None,
    context: object = None,
    answer_settings: Mapping[str, Any],
    **known: Any,  # noqa: ANN401 - fields of a request
) -> Request:
    """Return a request with the question and the documents that a guard's options say.

    ``question`` and ``context`` are what the application gives for this call alone,
    ``last`` is the user's last message, and ``known`` the other fields of the request.
    """
    if question is None and settings.question is not None:
        question = settings.question(messages)
    documents = context is not None or settings.context is not None
    if documents and not is_disabled():  # a retriever could fail
        known["context"] = documents_of(settings.context, messages, context)
    if context is not None and settings.min_grounded is not None:
        answer_settings = {**answer_settings, "context_from": CLIENT}
    return Request(
        settings=settings,
        state=state,
        question=state.question(question, last),
        answer_settings=answer_settings,
        **known,
    )
