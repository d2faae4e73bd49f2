"""What a guarded call is given, what it wants done, who does it, and how it ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from snne_guard.decision import Delivery
from snne_guard.errors import (
    ConfigurationError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.sampling.replies import Draw, ProviderCapabilities, Reply
from snne_guard.settings import GuardSettings
from snne_guard.similarity import LONG_QUESTION
from snne_guard.types import Assessment
from snne_guard.views import View

__all__ = [
    "Call",
    "Draws",
    "GuardState",
    "Outcome",
    "Request",
    "Sender",
    "StreamingSender",
    "Work",
    "uncertain_answer_error",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Wanted: requests to the model, all at once.

    The driver sends back a ``Reply`` or ``Failure`` for each, None for one that was
    still open at its deadline. A failed answer ends the wait for the samples.

    Attributes:
        draws: The requests.
        deadlines: For each the ``time.monotonic()`` until which to wait, None for ever.
    """

    draws: tuple[Draw, ...]
    deadlines: tuple[float | None, ...]

    @property
    def with_answer(self) -> bool:
        """Whether the answer is among them; it is the first then."""
        return any(draw.role == "answer" for draw in self.draws)

    @property
    def samples(self) -> Draws:
        """All but the first; only for draws with the answer."""
        return Draws(draws=self.draws[1:], deadlines=self.deadlines[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Wanted: the result of a function, or a ``Failure`` with what it raised.

    Attributes:
        function: What to call, without arguments.
        deadline: As for ``Draws``; a ``Failure`` with a ``TimeoutError`` after it.
        quick: Whether it may run on an event loop's own thread.
    """

    function: Callable[[], Any]
    deadline: float | None = None
    quick: bool = False


class GuardState:
    """What the calls of one guard share.

    Attributes:
        method: Name of the method that ``method="auto"`` has settled on, None before.
        n_ignored: Whether the provider was seen to ignore or refuse ``n``.
    """

    def __init__(self) -> None:
        self.method: str | None = None
        self.n_ignored = False
        self._warned = False

    def question(self, chosen: object, message: str | None, /) -> str | None:
        """Return what the user asks in a call.

        Args:
            chosen: What the application says it is, None if it does not.
            message: The user's last message, which then stands for it. One that is so
                long that it must hold more gives a warning, once.

        Raises:
            ConfigurationError: What the application says is no text.
        """
        if chosen is None:
            self._warn_if_long(message or "")
            return message
        if not isinstance(chosen, str):
            msg = f"expected the question as a text, got {type(chosen).__name__}"
            raise ConfigurationError(msg)
        return chosen

    def _warn_if_long(self, message: str) -> None:
        if len(message) < LONG_QUESTION or self._warned:
            return
        self._warned = True
        _log.warning(
            "the user's message has over %d characters: if it holds more than the "
            "question, such as retrieved text, tell the guard with question=",
            LONG_QUESTION,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the engine is asked for: one answer, assessed.

    Attributes:
        settings: The options of the guard.
        state: What its calls share.
        capabilities: What the provider takes.
        question: What the user asks, for similarities that use it.
        tools_bound: Whether the answer may call tools on the application's behalf.
        structured: Whether calls are a form of the answer, so that they are compared.
        schema: Whether the answer is to fit a schema, or to be JSON.
        context: What the model was given to answer from, for ``Span.grounded``.
        side_effects: Whether a sample could act on the world, so that none is drawn.
        answer: An answer that exists already; then only samples are drawn.
        answer_settings: What the answer is drawn with (``answer_temperature``,
            ``top_p``, ``max_tokens``, ``stop``), as far as that is known.
        run_id: The LangChain run of the call.
    """

    settings: GuardSettings
    state: GuardState
    capabilities: ProviderCapabilities = field(default_factory=ProviderCapabilities)
    question: str | None = field(default=None, repr=False)
    tools_bound: bool = False
    structured: bool = False
    schema: bool = False
    context: str | None = field(default=None, repr=False)
    side_effects: bool = False
    answer: Reply | None = field(default=None, repr=False)
    answer_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """The views of the samples; none where the form of an answer is bound."""
        bound = self.tools_bound or self.structured or self.schema
        return () if bound else self.settings.drawn_views

    @property
    def calls_pass(self) -> bool:
        """Whether an answer that calls tools is delivered without a score."""
        skip = self.settings.tool_calls == "skip"
        return self.tools_bound and skip and not self.structured


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a guarded call ended.

    Attributes:
        assessment: The record of it, for observers.
        delivery: What the application gets; where that is nothing, ``error`` is raised.
        answer: The answer's reply, None where none came.
        error: What withheld the answer, or why there is none.
        replacement: What ``on_uncertain`` returned, where that was no text.
    """

    assessment: Assessment
    delivery: Delivery
    answer: Reply | None = field(default=None, repr=False)
    error: BaseException | None = None
    replacement: Any = field(default=None, repr=False)

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the call, None where it stands for a withheld answer."""
        withheld = isinstance(self.error, UncertainAnswerError | SamplingError)
        return None if withheld and self.answer is not None else self.error


Call = Generator[Draws | Work, Any, Outcome]
"""A guarded call under way: yields what it wants done, is sent what came of it."""


class Sender(Protocol):
    """Sends the requests of one guarded call to its model."""

    def send(self, draw: Draw, /) -> Reply:
        """Send one request and wait for its reply."""
        ...

    async def asend(self, draw: Draw, /) -> Reply:
        """Do the same without blocking the event loop."""
        ...


class StreamingSender(Sender, Protocol):
    """A sender that can also pass on the answer's chunks as they come."""

    def stream(self) -> Generator[Any]:
        """Send the request for the answer and yield its chunks."""
        ...

    def astream(self) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        ...

    def streamed(self) -> Reply:
        """Return the answer that the chunks made up, once all have passed."""
        ...


def uncertain_answer_error(assessment: Assessment, /) -> UncertainAnswerError:
    """Return what is raised in place of an answer that is withheld."""
    u = assessment.uncertainty
    why = "could not be scored" if u is None else f"has an uncertainty of {u:.3f}"
    return UncertainAnswerError(
        f"the answer {why}; accepted is at most {assessment.threshold}",
        assessment_id=assessment.id,
        uncertainty=u,
        score=assessment.score,
        threshold=assessment.threshold,
        reasons=assessment.reasons,
    )
