"""What a guarded call yields and is sent, and how it ends.

A call yields ``Draws`` and ``Work``. A ``Draw`` is one request, a ``Response`` is what
it brought, and each ``Reply`` in that is a text or call of the model, the answer too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from snne_guard.cost import Cost, Role
from snne_guard.decision.policy import Delivery
from snne_guard.errors import SamplingError, UncertainAnswerError
from snne_guard.types import Assessment, Reply
from snne_guard.views import View

# -- What it asks for ------------------------------------------------------------------

TOP_LOGPROBS = 5
"""Likeliest tokens that a self-check asks for: as many as every provider gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One request to the model.

    Attributes:
        role: What it asks for.
        n: Replies asked for in this one request.
        turns: What a self-check or a judgement adds to the conversation: the answer,
            and the question about it.
        view: The view that samples are drawn in, None without views.
        other_model: Name of the other model that draws the sample, None for the guarded
            one. It is asked at its own settings.
        temperature: Sampling temperature; None leaves the user's own setting.
        logprobs: Whether token log-probabilities are wanted.
        deadline: The ``time.monotonic()`` until which to wait; None for no limit.
        retry: Whether it is sent again where it fails for a moment.
    """

    role: Role
    n: int = 1
    turns: tuple[str, ...] = field(default=(), repr=False)
    view: View | None = None
    other_model: str | None = None
    temperature: float | None = None
    logprobs: bool = False
    deadline: float | None = None
    retry: bool = False

    @property
    def extracts(self) -> bool:
        """Whether only a part of each reply is compared."""
        return self.view is not None and self.view.extract is not None

    def conversation(self, messages: Sequence[Any], /) -> list[Any]:
        """Return the messages that the model gets, from the user's own."""
        turns = [*messages] if self.view is None else self.view.rewritten(messages)
        further = zip(("assistant", "user"), self.turns, strict=False)
        return turns + [{"role": role, "content": text} for role, text in further]

    def added(self, taken: Collection[str], /) -> frozenset[str]:
        """Return the parameters that the guard adds, of those that a provider takes."""
        adds = {
            "n": self.n > 1,
            "logprobs": self.logprobs,
            "top_logprobs": self.role == "self_check",
            "temperature": self.temperature is not None,
        }
        return frozenset(name for name in taken if adds[name])


Draws = tuple[Draw, ...]
"""Asks the driver to send requests to the model, all at once; the answer comes first.

The driver sends back a ``Response`` or ``Failure`` for each, None for one that was
still open at its deadline. A failed answer ends the wait for the samples.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Asks the driver for the result of a function, or a ``Failure`` if it raises.

    Attributes:
        function: What to call, without arguments.
        deadline: The ``time.monotonic()`` until which to wait, None for no limit; after
            it the result is a ``Failure`` with a ``TimeoutError``.
        quick: Whether it takes next to no time, and so needs neither a thread of its
            own nor a deadline.
    """

    function: Callable[[], Any]
    deadline: float | None = None
    quick: bool = False


class Sender(Protocol):
    """Sends the requests of one guarded call to its model."""

    def send(self, draw: Draw, /) -> Response:
        """Send one request and wait for its response."""
        ...

    async def asend(self, draw: Draw, /) -> Response:
        """Do the same without blocking the event loop."""
        ...


class StreamingSender(Sender, Protocol):
    """A sender that can also pass on the answer's chunks as they come."""

    def stream(self, draw: Draw, /) -> Generator[Any]:
        """Send the request for the answer and yield its chunks."""
        ...

    def astream(self, draw: Draw, /) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        ...

    def streamed_answer(self) -> Response:
        """Return the answer that the chunks make up, once all have passed."""
        ...


# -- What it is sent ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What one request brought.

    Attributes:
        replies: What it holds; fewer than asked for where a provider ignores ``n``.
        cost: What the request took, failed ones before it included.
        raw: The answer as the model gave it (an ``AIMessage``, a
            ``ChatCompletion``), to be delivered as it is.
        temperature_set: Whether samples were drawn at the temperature asked for.
        rejected: Parameters that the guard wanted and the provider did not take.
        greedy: Whether samples may be the likeliest text each time, since the class is
            greedy unless told and cannot be told.
        p_correct: Of a self-check: the probability that the answer is called correct,
            None where that is in doubt.
    """

    replies: tuple[Reply, ...]
    cost: Cost = field(default_factory=Cost)
    raw: Any = field(default=None, repr=False, compare=False)
    temperature_set: bool = True
    rejected: frozenset[str] = frozenset()
    greedy: bool = False
    p_correct: float | None = None


def with_failed(response: Response, failed: int, /) -> Response:
    """Return a response whose cost includes requests that failed before it."""
    if not failed:
        return response
    cost = replace(response.cost, attempts=response.cost.attempts + failed)
    return replace(response, cost=cost)


class NoReplyError(SamplingError):
    """The model answered a request with no reply in it."""

    def __init__(self) -> None:
        super().__init__("the model returned no reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request, or work of the driver, that failed for good.

    Attributes:
        error: The last exception.
        attempts: Requests that were sent for it.
    """

    error: BaseException
    attempts: int = 1


# -- How it ends -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a guarded call ended.

    Attributes:
        assessment: The record of it, for observers.
        delivery: What the application gets; where that is nothing, ``error`` is raised.
        answer: The response that brought the answer, None where none came.
        error: What withheld the answer, or why there is none.
        replacement: What ``on_uncertain`` returned.
    """

    assessment: Assessment
    delivery: Delivery
    answer: Response | None = field(default=None, repr=False)
    error: BaseException | None = None
    replacement: Any = field(default=None, repr=False)

    def assessed(self) -> Assessment:
        """Return the assessment, even if the answer is withheld.

        Raises:
            BaseException: What ended the call before there was an answer to assess.
        """
        withheld = isinstance(self.error, UncertainAnswerError | SamplingError)
        if self.error is None or (withheld and self.answer is not None):
            return self.assessment
        raise self.error


Call = Generator[Draws | Work, Any, Outcome]
"""A guarded call in progress: it yields work to be done, and is sent the results."""
