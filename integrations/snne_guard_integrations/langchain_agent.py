"""LangChain agents: middleware that guards each call of the agent's model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.language_models import BaseChatModel, FakeListChatModel

from snne_guard import ConfigurationError, MissingExtraError, SNNEGuard

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
    )
    from langchain.agents.structured_output import ToolStrategy
except ImportError as error:
    raise MissingExtraError(needed="langchain", extra="agents") from error


class UncertaintyMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Guards each call of an agent's model, whichever model that is.

    Each message of the model carries its assessment in
    ``response_metadata["snne_guard"]``. Turns that call tools pass without a score and
    without samples unless ``tool_calls="score"``; a structured response is scored, and
    the message that brings it has its ``fields``. A turn that is refused, or handed to
    the fallback, is in no state, stream or checkpoint. Samples never run a tool.

    List it last, so that middleware that retries, falls back or chooses the model
    wraps guarded calls.

    Args:
        **options: Those of ``SNNEGuard``. A refusal does not fit a
            ``response_format``: if the agent has one, an answer that is refused
            raises ``UncertainAnswerError``.

    Raises:
        ConfigurationError: An option makes no sense; or, in a run, the model is guarded
            already, or other middleware bypasses the guard.

    Example:
        >>> from langchain.agents import create_agent
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> guarding = UncertaintyMiddleware(n=3, threshold=0.4, on_uncertain="refuse")
        >>> agent = create_agent(model, middleware=[guarding])
        >>> result = agent.invoke({"messages": [("user", "The capital of France?")]})
        >>> result["messages"][-1].response_metadata["snne_guard"]["decision"]
        'accept'
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - SNNEGuard checks them
        super().__init__()
        self._options = options
        # Check the options here rather than in the agent's first run. A calibration
        # compares names only where there is one model, and the agent's is not known.
        fake = FakeListChatModel(responses=[""])
        self._guard = SNNEGuard(fake.with_fallbacks([fake]), **options)

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

    def _guarded(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        model: Any = request.model
        if not isinstance(model, BaseChatModel) and hasattr(model, "_model"):
            # Of init_chat_model with configurable fields, which this run has set.
            model = model._model()  # noqa: SLF001 - there is no public place
        guard = self._guard_on(model)
        if request.response_format is not None:
            wanted: Any = request.response_format
            forms = ToolStrategy(getattr(wanted, "schema", wanted)).schema_specs
            names = frozenset(form.name for form in forms)
            # Without tools there is no other call.
            update = {"refusal": None, "structured": names if request.tools else True}
            guard = guard.model_copy(update=update)
        return request.override(model=guard)

    def _guard_on(self, model: BaseChatModel) -> SNNEGuard:
        """Return a guard on the model; the last is kept, with what it has learnt."""
        guard = self._guard
        if guard.guarded is model:
            return guard
        if isinstance(model, SNNEGuard):
            msg = "the agent's model is guarded already: pass it the bare model"
            raise ConfigurationError(msg)
        # One limit for all models.
        self._guard = guard = SNNEGuard(model, shared=guard.shared, **self._options)
        return guard


def _checked(response: ModelResponse[Any]) -> ModelResponse[Any]:
    if not any(
        "snne_guard" in message.response_metadata for message in response.result
    ):
        msg = "other middleware bypassed the guard. List UncertaintyMiddleware last"
        raise ConfigurationError(msg)
    return response
