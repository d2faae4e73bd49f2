"""LangChain agents: middleware that guards each call of the agent's model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage

from snne_guard import (
    Assessment,
    ConfigurationError,
    InputError,
    MissingExtraError,
    SNNEGuard,
)

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
    )
    from langgraph.runtime import Runtime
    from langgraph.types import interrupt
except ImportError as error:
    raise MissingExtraError(needed="langchain", extra="agents") from error

__all__ = ["UncertaintyMiddleware"]


class UncertaintyMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Guards each call of an agent's model, whichever model that is.

    Each message of the model carries its assessment in
    ``response_metadata["snne_guard"]``. Turns that call tools pass without a score and
    without samples unless ``tool_calls="score"``. A turn that is refused, or handed to
    the fallback, is in no state, stream or checkpoint. Samples never run a tool.

    List it last, so that middleware that retries, falls back or chooses the model
    stands around guarded calls.

    Args:
        on_uncertain: As for ``SNNEGuard``; besides, ``"interrupt"`` asks a person by
            LangGraph's ``interrupt``, which needs a checkpointer. The person sees
            ``{"answer": text, "tool_calls": [...], "uncertainty": {...}}`` and
            resumes with True, to let the turn stand, or with the text to say instead;
            nothing is drawn again. The turn is in the state and the stream by then.
            If the agent has a ``response_format``, which neither a refusal nor a
            person's text would fit, ``"refuse"`` raises ``UncertainAnswerError`` and
            ``"interrupt"`` is an error.
        **options: The other options of ``SNNEGuard``.

    Raises:
        ConfigurationError: An option makes no sense; or, in a run, the model is guarded
            already, or other middleware bypasses the guard.
        InputError: In a run, a person's reply is neither True nor a text.
        MissingExtraError: On import of this module, if ``langchain`` is missing.

    Example:
        >>> from langchain.agents import create_agent
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> guarding = UncertaintyMiddleware(n=3, threshold=0.4, on_uncertain="refuse")
        >>> agent = create_agent(model, middleware=[guarding])
        >>> result = agent.invoke({"messages": [("user", "The capital of France?")]})
        >>> result["messages"][-1].response_metadata["snne_guard"]["decision"]
        'accept'
    """

    def __init__(
        self,
        *,
        on_uncertain: str | Callable[[Assessment], Any] = "flag",
        **options: Any,  # noqa: ANN401 - SNNEGuard checks them
    ) -> None:
        super().__init__()
        self._interrupts = on_uncertain == "interrupt"
        action = _flag if self._interrupts else on_uncertain
        self._options: dict[str, Any] = {**options, "on_uncertain": action}
        # Check the options here rather than in the agent's first run. A calibration
        # compares names only where there is one model, and the agent's is not known.
        fake = FakeListChatModel(responses=[""])
        self._guard = SNNEGuard(fake.with_fallbacks([fake]), **self._options)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Call the model, guarded."""
        return _checked(handler(self._guarded(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Do what ``wrap_model_call`` does without blocking the event loop."""
        return _checked(await handler(self._guarded(request)))

    def after_model(
        self,
        state: AgentState[Any],
        runtime: Runtime[Any],  # noqa: ARG002 - LangChain's signature
    ) -> dict[str, Any] | None:
        """Ask a person about a turn that is uncertain.

        It is a node of its own in the agent's graph: an interrupt in the model's node
        would draw all samples again on resuming.
        """
        message = state["messages"][-1]
        if not self._interrupts or not isinstance(message, AIMessage):
            return None
        record = message.response_metadata.get("snne_guard") or {}
        if record.get("decision") != "flag":
            return None
        reply = interrupt(
            {
                "answer": message.text,
                "tool_calls": message.tool_calls,
                "uncertainty": record,
            }
        )
        if reply is True:
            return None
        if not isinstance(reply, str):
            msg = f"resume with True or with a text; got {type(reply).__name__}"
            raise InputError(msg)
        # With the same id it replaces the turn and its tool calls.
        metadata = message.response_metadata
        replacement = AIMessage(reply, id=message.id, response_metadata=metadata)
        return {"messages": [replacement]}

    def _guarded(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        guard = self._guard_on(request.model)
        if request.response_format is not None:
            guard = guard.model_copy(update=self._structured(request))
        return request.override(model=guard)

    def _structured(self, request: ModelRequest[Any]) -> dict[str, Any]:
        """Return the options that differ where answers have a format."""
        if self._interrupts:
            msg = (
                'on_uncertain="interrupt" does not go with a response_format: what a '
                "person says would not fit it"
            )
            raise ConfigurationError(msg)
        options: dict[str, Any] = {}
        if self._options["on_uncertain"] == "refuse":
            options["on_uncertain"] = "raise"
        if not request.tools:
            options["tool_calls"] = "score"  # the only call there can be is the answer
        return options

    def _guard_on(self, model: BaseChatModel) -> SNNEGuard:
        """Return a guard on the model; the last is kept, with what it has learnt."""
        guard = self._guard
        if guard.guarded is model:
            return guard
        if isinstance(model, SNNEGuard):
            msg = (
                "the agent's model is guarded already: pass the bare model to the "
                "agent, or leave out UncertaintyMiddleware"
            )
            raise ConfigurationError(msg)
        self._guard = guard = SNNEGuard(model, **self._options)
        return guard


def _flag(assessment: Assessment) -> str:  # noqa: ARG001 - as on_uncertain is called
    return "flag"


def _checked(response: ModelResponse[Any]) -> ModelResponse[Any]:
    if not any(
        "snne_guard" in message.response_metadata for message in response.result
    ):
        msg = (
            "the guard was bypassed: middleware listed after UncertaintyMiddleware "
            "has changed the model or answered itself. List UncertaintyMiddleware last"
        )
        raise ConfigurationError(msg)
    return response
