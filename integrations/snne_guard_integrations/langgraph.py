"""LangGraph: a node that measures an answer, and an edge that goes by its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from snne_guard import ConfigurationError, InputError, SNNEGuard
from snne_guard_integrations._extras import required

required("langgraph.graph.message", extra="langgraph", at_least="1.1.5")
from langgraph.graph.message import add_messages  # noqa: E402 - after the check
from typing_extensions import TypedDict  # noqa: E402

__all__ = [
    "UncertaintyState",
    "add_records",
    "route_on_uncertainty",
    "uncertainty_node",
]

Record = dict[str, Any]


def add_records(old: list[Record] | None, new: list[Record] | None) -> list[Record]:
    """Add records of assessments to a state; one that is there already is replaced.

    Example:
        >>> add_records([{"id": "1", "decision": "flag"}], [{"id": "2"}])
        [{'id': '1', 'decision': 'flag'}, {'id': '2'}]
        >>> add_records([{"id": "1", "decision": "flag"}], [{"id": "1"}])
        [{'id': '1'}]
    """
    records = {record["id"]: record for record in (*(old or ()), *(new or ()))}
    return list(records.values())


class UncertaintyState(TypedDict):
    """A state with messages and what was measured of them; extend it, or copy a line.

    Attributes:
        messages: The conversation.
        uncertainty: One record for each message that was measured, plain JSON without
            any text: what ``response_metadata["snne_guard"]`` holds, and its
            ``message_id``.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    uncertainty: NotRequired[Annotated[list[Record], add_records]]


def uncertainty_node(
    guard: SNNEGuard,
    *,
    messages: str = "messages",
    uncertainty: str = "uncertainty",
) -> Runnable[Any, dict[str, Any]]:
    """Return a node that measures the last message, or gives a measured answer.

    Where the last message is the model's, the messages before it are its prompt, and
    only samples are drawn; a message that a guard has measured already costs nothing.
    Where it is anyone else's, the guard answers. The record goes to the state, so that
    a graph that was interrupted goes on without drawing again; put ``interrupt`` into a
    node of its own.

    Args:
        guard: The guard, on the model that answers in this graph, with the same tools.
        messages: Key of the conversation in the state.
        uncertainty: Key of the records, with ``add_records`` as its reducer.

    Raises:
        ConfigurationError: If it is no ``SNNEGuard``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langgraph.graph import END, START, StateGraph
        >>> guard = SNNEGuard(FakeListChatModel(responses=["Rome"]), n=3, threshold=0.4)
        >>> graph = StateGraph(UncertaintyState)
        >>> graph = graph.add_node("answer", uncertainty_node(guard))
        >>> graph = graph.add_edge(START, "answer").compile()
        >>> state = graph.invoke({"messages": [("user", "The capital of Italy?")]})
        >>> state["messages"][-1].content, state["uncertainty"][-1]["decision"]
        ('Rome', 'accept')
    """
    made = _Node(guard=_checked(guard), messages=messages, uncertainty=uncertainty)
    return RunnableLambda(made.run, made.arun, name="uncertainty")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """What ``uncertainty_node`` does, in its two twins."""

    guard: SNNEGuard
    messages: str
    uncertainty: str

    def run(self, state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - the graph's own
        prompt, message = _conversation(state, self.messages)
        if message is None:
            return self._answered(self.guard.invoke(prompt, config))
        found = message.response_metadata.get("snne_guard")
        if found is None:
            assessment = self.guard.assess(prompt, config, answer=message)
            found = assessment.to_metadata()
        return self._measured(message, found)

    async def arun(self, state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401
        prompt, message = _conversation(state, self.messages)
        if message is None:
            return self._answered(await self.guard.ainvoke(prompt, config))
        found = message.response_metadata.get("snne_guard")
        if found is None:
            assessment = await self.guard.aassess(prompt, config, answer=message)
            found = assessment.to_metadata()
        return self._measured(message, found)

    def _answered(self, message: AIMessage) -> dict[str, Any]:
        if not message.id:  # by it the record is known
            message = message.model_copy(update={"id": str(uuid4())})
        found = message.response_metadata["snne_guard"]
        return {self.messages: [message], **self._measured(message, found)}

    def _measured(
        self, message: BaseMessage, found: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {self.uncertainty: [{**found, "message_id": message.id}]}


def route_on_uncertainty(
    *,
    accept: str,
    uncertain: str,
    unscored: str | None = None,
    messages: str = "messages",
    uncertainty: str = "uncertainty",
) -> Callable[[Any], str]:
    """Return a conditional edge that goes by the record of the last message.

    Args:
        accept: Node to go to where the answer was accepted; ``END`` is one.
        uncertain: Node for one that was not: flagged, refused, handed over, or not to
            be scored where ``on_error="uncertain"``.
        unscored: Node for one that passed unscored because you said so: it calls tools
            (``tool_calls="skip"``), it is not in the share that is sampled, or it
            could not be scored and ``on_error="accept"``. None: as ``uncertain``.
        messages: Key of the conversation in the state.
        uncertainty: Key of the records.

    Raises:
        InputError: In a run, if the last message of the model has no record.
        ConfigurationError: In a run, if the guard has no threshold.

    Example:
        >>> from langgraph.graph import END
        >>> route = route_on_uncertainty(accept=END, uncertain="person")
        >>> message = AIMessage("Rome", id="m")
        >>> record = {"id": "1", "message_id": "m", "decision": "flag"}
        >>> route({"messages": [message], "uncertainty": [record]})
        'person'
    """
    nodes = {"accept": accept, "unscored": unscored or uncertain}

    def route(state: Any) -> str:  # noqa: ANN401 - the graph's own
        record = _last_record(state, messages, uncertainty)
        decision = record["decision"]
        if decision is None:
            msg = "the guard has no threshold, so there is no decision to go by"
            raise ConfigurationError(msg)
        return nodes.get(decision, uncertain)

    # By this LangGraph knows where the edge may lead.
    route.__annotations__["return"] = Literal[(*nodes.values(), uncertain)]
    return route


def _checked(guard: object) -> SNNEGuard:
    if isinstance(guard, SNNEGuard):
        return guard
    msg = f"uncertainty_node needs an SNNEGuard, got {type(guard).__name__}"
    raise ConfigurationError(msg)


def _part(state: object, key: str) -> list[Any]:
    """Return one list of a state, which may be a dict or an object with fields."""
    parts = cast("Any", state if isinstance(state, Mapping) else vars(state))
    return [*(parts.get(key) or ())]


def _conversation(
    state: object, key: str
) -> tuple[list[BaseMessage], AIMessage | None]:
    """Return the prompt, and the model's message at its end, None if there is none."""
    found = _part(state, key)
    if not found:
        msg = f"expected messages in the state's {key!r}, there are none"
        raise InputError(msg)
    message = found[-1]
    if not isinstance(message, AIMessage):
        return found, None
    return found[:-1], message


def _last_record(state: object, messages: str, uncertainty: str) -> Record:
    answers = [m for m in _part(state, messages) if isinstance(m, AIMessage)]
    message_id = answers[-1].id if answers else None
    for record in reversed(_part(state, uncertainty)):
        if record["message_id"] == message_id:
            return dict(record)
    msg = (
        f"the last message of the model has no record in the state's {uncertainty!r}; "
        "lead it through uncertainty_node first"
    )
    raise InputError(msg)
