"""LangChain agents: middleware that scores each model call and acts on the score."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, NotRequired, cast, get_args

from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage

from snne_guard import Assessment, ConfigurationError, SNNEGuard
from snne_guard.decision import Calibration, Policy, Threshold, accept_threshold
from snne_guard_integrations._extras import required
from snne_guard_integrations._review import Held
from snne_guard_integrations._turns import (
    Guards,
    HandOver,
    Turn,
    Turns,
    asking,
    during,
    hold,
)

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelFallbackMiddleware,
        ModelRequest,
        ModelResponse,
        hook_config,
    )
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.agents.structured_output import (
        AutoStrategy,
        StructuredOutputError,
        ToolStrategy,
    )
    from langgraph.types import Command, interrupt
except ImportError:
    required("langchain.agents.middleware", extra="agents", at_least="1.2.15")
    raise

__all__ = ["OnUncertainTurn", "UncertaintyMiddleware", "UncertaintyState"]

OnUncertainTurn = Literal["flag", "refuse", "fallback", "interrupt", "raise"]
"""What is done with an uncertain turn; ``"interrupt"`` asks a person."""

Limit = float | Threshold | tuple[float | Threshold, float | Threshold] | None
Action = OnUncertainTurn | Callable[[Assessment], Any]


def _by_id(
    old: list[dict[str, Any]] | None, new: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """Add records of assessments; one that is there already is replaced."""
    records = {record["id"]: record for record in (*(old or ()), *(new or ()))}
    return list(records.values())


class UncertaintyState(AgentState[Any]):
    """What the middleware adds to the state of an agent.

    Attributes:
        uncertainty: One record for each model call, plain JSON without any text: what
            ``response_metadata["snne_guard"]`` holds, with ``kind`` (``"answer"`` or
            ``"tool_calls"``), ``message_id``, and ``reviewed`` after a review.
        uncertainty_pending: What waits for a person, or for the end of the loop.
    """

    uncertainty: NotRequired[Annotated[list[dict[str, Any]], _by_id]]
    uncertainty_pending: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr]]


class UncertaintyMiddleware(AgentMiddleware[UncertaintyState, Any, Any]):
    """Scores each call of an agent's model, and acts where it is uncertain.

    List it last: what stands before it (``ModelFallbackMiddleware``,
    ``ModelRetryMiddleware``, one that chooses the model) then wraps guarded calls, and
    what it delivers is what their hooks see. The model's answer and what is made of it
    are one step of the agent: an answer that is refused or handed over is in no state,
    stream, event or checkpoint. One that a person is to see is in the checkpoint and in
    the interrupt, and becomes a message when the person has decided.

    Samples never run a tool and are in no stream. Where nothing may be withheld, the
    answer streams as ever; else it comes as one message after the decision.

    Args:
        threshold: Largest ``u`` of an answer that is accepted; as for ``SNNEGuard``.
            None measures only.
        on_uncertain: What happens to an answer that is not accepted. ``"flag"``
            delivers it. ``"refuse"`` puts the ``refusal`` in its place and ends the
            loop. ``"fallback"`` asks the ``fallback`` model, with the same tools.
            ``"interrupt"`` asks a person, by LangGraph's ``interrupt``, which needs a
            checkpointer; no sample is drawn again. ``"raise"`` raises
            ``UncertainAnswerError``. A callable gets the ``Assessment`` and returns one
            of these words or a message to send instead.
        tool_calls: ``"skip"`` lets turns that call tools pass without a score and
            without samples; ``"score"`` compares their calls field by field. None:
            ``"score"`` where there is a ``tool_threshold``.
        tool_threshold: Largest ``u`` of a turn that calls tools. A turn that is not
            accepted does not run its tools, unless it is only flagged.
        on_uncertain_tools: What happens to such a turn; as ``on_uncertain``.
        fallback: The model that answers instead, or its name; also used where the
            model itself fails.
        **options: Further options of ``SNNEGuard``: ``n``, ``method``, ``budget``,
            ``observers``, …

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris", "Lyon", "Nice"])
        >>> guarding = UncertaintyMiddleware(n=3, threshold=0.4, on_uncertain="refuse")
        >>> agent = create_agent(model, middleware=[guarding])
        >>> result = agent.invoke({"messages": [("user", "The capital of Ebnat?")]})
        >>> result["messages"][-1].content
        'I am not certain enough of the answer to give one.'
        >>> result["uncertainty"][-1]["decision"], result["uncertainty"][-1]["kind"]
        ('refuse', 'answer')
    """

    state_schema = UncertaintyState

    def __init__(
        self,
        *,
        threshold: Limit = None,
        on_uncertain: Action = "flag",
        tool_calls: Literal["skip", "score"] | None = None,
        tool_threshold: Limit = None,
        on_uncertain_tools: Action = "flag",
        fallback: BaseChatModel | str | None = None,
        **options: Any,  # noqa: ANN401 - SNNEGuard checks them
    ) -> None:
        super().__init__()
        self.tools = []
        # LangChain's own way to ask another model leaves out what only this one takes.
        self._other = None if fallback is None else ModelFallbackMiddleware(fallback)
        on_error = options.get("on_error", "uncertain")
        limit = _calibrated(options) if threshold is None else threshold
        answers = _policy("threshold", limit, "on_uncertain", on_uncertain, on_error)
        tools = _policy(
            "tool_threshold",
            tool_threshold,
            "on_uncertain_tools",
            on_uncertain_tools,
            on_error,
        )
        if tool_calls not in {None, "skip", "score"}:
            msg = f"tool_calls must be 'skip', 'score' or None; got {tool_calls!r}"
            raise ConfigurationError(msg)
        if tool_calls == "skip" and tools.threshold is not None:
            msg = "tool_calls='skip' leaves turns unscored, so tool_threshold is unused"
            raise ConfigurationError(msg)
        if fallback is None and "fallback" in {on_uncertain, on_uncertain_tools}:
            msg = "'fallback' needs a fallback: the model that answers instead"
            raise ConfigurationError(msg)
        scores = tool_calls == "score" or tools.threshold is not None
        first = SNNEGuard(
            FakeListChatModel(responses=[""]),
            threshold=threshold,
            on_uncertain=answers.on_uncertain,
            tool_calls=Turns(answers=answers, tools=tools if scores else "skip"),
            fallback=None if fallback is None else HandOver(),
            **options,
        )
        self._guards = Guards(first=first)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Call the model, guarded.

        Args:
            request: The model call.
            handler: Carries it out.

        Returns:
            What the agent goes on with, and the record for its state.

        Raises:
            UncertainAnswerError: If the turn is withheld and ``"raise"`` was chosen.
            ConfigurationError: If the guard would be bypassed.
        """
        turn = Turn(answer_tools=_answer_tools(request))
        guarded = request.override(model=self._guards.of(request.model))
        try:
            with during(turn):
                response = handler(guarded)
        except StructuredOutputError:
            if not turn.is_replaced:
                raise
            response = ModelResponse(result=[])
        if turn.hands_over and self._other is not None:

            def ask(asked: ModelRequest[Any]) -> ModelResponse[Any]:
                return handler(_not_again(asked, request))

            response = _whole(self._other.wrap_model_call(request, ask))
        return self._settled(request, turn, response)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Do what ``wrap_model_call`` does without blocking the event loop."""
        turn = Turn(answer_tools=_answer_tools(request))
        guarded = request.override(model=self._guards.of(request.model))
        try:
            with during(turn):
                response = await handler(guarded)
        except StructuredOutputError:
            if not turn.is_replaced:
                raise
            response = ModelResponse(result=[])
        if turn.hands_over and self._other is not None:

            async def ask(asked: ModelRequest[Any]) -> ModelResponse[Any]:
                return await handler(_not_again(asked, request))

            response = _whole(await self._other.awrap_model_call(request, ask))
        return self._settled(request, turn, response)

    def _settled(
        self, request: ModelRequest[Any], turn: Turn, response: ModelResponse[Any]
    ) -> ExtendedModelResponse[Any]:
        record = turn.record
        pending: dict[str, Any] | None = None
        if turn.held is not None:
            pending = {
                "messages": response.result,
                "structured_response": response.structured_response,
                "record": record,
                "structured": request.response_format is not None
                and turn.kind == "answer",
            }
            response = ModelResponse(result=[])
        elif turn.is_refused:
            # Without an answer of the form that was asked for, the loop would go on.
            pending = {"end": True} if request.response_format is not None else None
            response = ModelResponse(result=[*turn.messages])
        elif turn.hands_over:
            response = _recorded(response, record)
        update = {"uncertainty": [record], "uncertainty_pending": pending}
        return ExtendedModelResponse(
            model_response=response, command=Command(update=update)
        )

    @hook_config(can_jump_to=["end"])
    def after_model(
        self, state: UncertaintyState, runtime: object
    ) -> dict[str, Any] | None:
        """Ask a person about an uncertain turn, or end the loop after a refusal.

        Args:
            state: The state of the agent.
            runtime: LangGraph's runtime.

        Returns:
            What the person decided, as messages.
        """
        del runtime
        pending = state.get("uncertainty_pending")
        if pending is None:
            return None
        if "end" in pending:
            return {"uncertainty_pending": None, "jump_to": "end"}
        held = Held(refusal=self._guards.first.refusal, **pending)
        return {"uncertainty_pending": None, **held.ask(interrupt)}

    @hook_config(can_jump_to=["end"])
    async def aafter_model(
        self, state: UncertaintyState, runtime: object
    ) -> dict[str, Any] | None:
        """Do what ``after_model`` does."""
        return self.after_model(state, runtime)


def _calibrated(options: dict[str, Any]) -> Limit:
    """Return the limits of the calibration among the options, None without one."""
    made = options.get("calibration")
    if made is None:
        return None
    if not isinstance(made, Calibration):
        made = options["calibration"] = Calibration.load(made)
    accept, refuse = made.limits
    return accept if refuse is None else (accept, refuse)


def _policy(
    limit_name: str,
    limit: Limit,
    action_name: str,
    action: Action,
    on_error: Any,  # noqa: ANN401 - the policy checks it
) -> Policy:
    accept, refuse_above = accept_threshold(limit)
    words = get_args(OnUncertainTurn)
    if not callable(action) and action not in words:
        choices = ", ".join(map(repr, words))
        msg = f"{action_name} must be one of {choices} or a callable; got {action!r}"
        raise ConfigurationError(msg)
    if limit is None and action != "flag":
        msg = f"{action_name}={action!r} needs a {limit_name} to be uncertain by"
        raise ConfigurationError(msg)
    acting: Any = action
    if action == "interrupt":
        acting = hold
    elif callable(action):
        acting = asking(action)
    return Policy(
        threshold=accept,
        refuse_above=refuse_above,
        on_uncertain=acting,
        on_error=on_error,
    )


def _answer_tools(request: ModelRequest[Any]) -> frozenset[str]:
    """Return the names of the tools that a structured answer calls."""
    wanted: Any = request.response_format
    if isinstance(wanted, AutoStrategy):
        schema: Any = cast("Any", wanted).schema
        wanted = ToolStrategy(schema=schema)
    specs = wanted.schema_specs if isinstance(wanted, ToolStrategy) else ()
    return frozenset(spec.name for spec in specs)


class _HandedOverError(Exception):
    """Stands for the model that was asked already."""


def _not_again(
    asked: ModelRequest[Any], before: ModelRequest[Any]
) -> ModelRequest[Any]:
    """Return a request, unless it is the one that was carried out before."""
    if asked is before:
        raise _HandedOverError
    return asked


def _whole(response: ModelResponse[Any] | AIMessage) -> ModelResponse[Any]:
    return cast("ModelResponse[Any]", response)  # a fallback passes on what it got


def _recorded(
    response: ModelResponse[Any], record: Mapping[str, Any]
) -> ModelResponse[Any]:
    """Return a fallback's response with the record on its message."""
    message, *notes = response.result
    found = message.response_metadata.get("snne_guard")
    kept = dict(record) if found is None else {**record, "fallback": found}
    metadata = {**message.response_metadata, "snne_guard": kept}
    message = message.model_copy(update={"response_metadata": metadata})
    return ModelResponse(
        result=[message, *notes], structured_response=response.structured_response
    )
