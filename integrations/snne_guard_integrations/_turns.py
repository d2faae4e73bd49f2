"""One model call of an agent, guarded, and what the agent makes of it."""

from __future__ import annotations

import inspect
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig

from snne_guard import Assessment, ConfigurationError, GuardedChatModel, SNNEGuard
from snne_guard.decision import Policy
from snne_guard.types import Sample

__all__ = ["Guards", "HandOver", "Turn", "Turns", "asking", "during", "hold"]

_MODELS = 32
"""Models whose guards are kept; an agent may choose another one for each call."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """One model call of an agent, and what came of it.

    Attributes:
        answer_tools: Names of the tools that a structured answer calls.
        kind: Whether the model called tools or answered.
        message: What the guard delivers.
        held: The model's own message, where a person is to see it first.
        hands_over: Whether the fallback model is to answer.
    """

    answer_tools: frozenset[str]
    kind: Literal["answer", "tool_calls"] = "answer"
    message: AIMessage | None = None
    held: AIMessage | None = None
    hands_over: bool = False

    @property
    def record(self) -> dict[str, Any]:
        """The record of the assessment.

        Raises:
            ConfigurationError: If the guard was not asked.
        """
        if self.message is None:
            msg = (
                "the guard was bypassed: a middleware that is listed after "
                "UncertaintyMiddleware has changed the model or answered in its "
                "place. List UncertaintyMiddleware last"
            )
            raise ConfigurationError(msg)
        record: dict[str, Any] = self.message.response_metadata["snne_guard"]
        return {
            **record,
            "kind": self.kind,
            "message_id": (self.held or self.message).id,
        }

    @property
    def messages(self) -> list[AIMessage]:
        """What the guard delivers."""
        return [] if self.message is None else [self.message]

    @property
    def is_refused(self) -> bool:
        """Whether a refusal stands in the place of the answer."""
        return self.held is None and self.record["decision"] == "refuse"

    @property
    def is_replaced(self) -> bool:
        """Whether the model's own message goes nowhere."""
        return self.hands_over or self.is_refused

    def delivered(self, message: AIMessage) -> AIMessage:
        """Note what the guard delivers; return what the agent is to read."""
        self.message = message
        return message if self.held is None else self.held


_TURN: ContextVar[Turn] = ContextVar("snne_guard_turn")


@contextmanager
def during(turn: Turn) -> Generator[None]:
    token = _TURN.set(turn)
    try:
        yield
    finally:
        _TURN.reset(token)


class _TurnModel(GuardedChatModel):
    """An agent's model, guarded: it tells the turn what the guard delivers.

    The guard has runs of its own, so this model has none: nothing that is held back
    passes through a callback handler, and usage is counted once.
    """

    @classmethod
    def on(cls, guard: SNNEGuard) -> _TurnModel:
        """Return the model of a guard."""
        made: Any = cls  # type checkers see the fields that pydantic makes options of
        return cast("_TurnModel", made(guard))

    @property
    def model_name(self) -> str:
        """The inner model's name, by which LangChain knows what it can do."""
        inner = self.guard.model
        return str(getattr(inner, "model_name", getattr(inner, "model", "")))

    def invoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Return the answer, or what stands in for it."""
        turn = _TURN.get()
        turn.held, turn.hands_over = None, False
        return turn.delivered(self.guard.invoke(input, config, **kwargs))

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Do what ``invoke`` does without blocking the event loop."""
        turn = _TURN.get()
        turn.held, turn.hands_over = None, False
        return turn.delivered(await self.guard.ainvoke(input, config, **kwargs))


class HandOver(Runnable[Any, AIMessage]):
    """Stands where a guard has its fallback: the agent asks that one, with tools."""

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        del input, config, kwargs
        _TURN.get().hands_over = True
        return AIMessage("")

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return self.invoke(input, config, **kwargs)


def hold(assessment: Assessment) -> AIMessage:
    """Keep the answer for a person; nothing of it goes anywhere else."""
    _TURN.get().held = assessment.raw
    return AIMessage("")


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Says by which policy a turn that calls tools is decided on."""

    answers: Policy
    tools: Policy | Literal["skip"]

    @property
    def may_withhold(self) -> bool:
        """Whether a turn may be held back."""
        return self.tools != "skip" and self.tools.may_withhold

    def __call__(self, answer: Sample) -> Policy | Literal["skip"]:
        turn = _TURN.get()
        called = {call["name"] for call in json.loads(answer.tool_calls or "[]")}
        if called & turn.answer_tools:
            return self.answers
        turn.kind = "tool_calls"
        return self.tools


@dataclass(frozen=True, kw_only=True)
class Guards:
    """The guards of an agent's models, each made once; they share their limits."""

    first: SNNEGuard
    _made: OrderedDict[int, _TurnModel] = field(
        default_factory=OrderedDict[int, _TurnModel]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, model: BaseChatModel) -> _TurnModel:
        """Return a model, guarded."""
        if isinstance(model, GuardedChatModel):
            msg = (
                "the agent's model is a GuardedChatModel already; give the agent the "
                "model itself, and UncertaintyMiddleware guards it"
            )
            raise ConfigurationError(msg)
        with self._lock:
            # What is kept holds its model, so no other one has the same id.
            guarded = self._made.pop(id(model), None)
            if guarded is None:
                guarded = _TurnModel.on(self.first.on(model))
            self._made[id(model)] = guarded
            if len(self._made) > _MODELS:
                self._made.popitem(last=False)
        return guarded


def asking(decide: Callable[[Assessment], Any]) -> Callable[[Assessment], Any]:
    """Return a user's function, whose ``"interrupt"`` is carried out here."""

    def chosen(assessment: Assessment, result: Any) -> Any:
        return hold(assessment) if result == "interrupt" else result

    async def later(assessment: Assessment, result: Any) -> Any:
        return chosen(assessment, await result)

    def ask(assessment: Assessment) -> Any:
        result = decide(assessment)
        if inspect.iscoroutine(result):
            return later(assessment, result)
        return chosen(assessment, result)

    return ask
