"""LangGraph: a node that measures answers, and an edge that follows the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from snne_guard import Assessment, InputError, SNNEGuard


def uncertainty_node(guard: SNNEGuard) -> Runnable[Any, dict[str, Any]]:
    """Return a node that measures the answer at the end of the conversation.

    The conversation is the state's ``messages``, whose reducer must replace a message
    by one with the same id, as ``add_messages`` does. The messages before the answer
    are its prompt, and only samples are drawn; the answer gets the assessment as
    ``response_metadata["snne_guard"]`` and is otherwise unchanged. An answer that a
    guard gave stays as it is. Documents of one run can be given by
    ``config={"metadata": {"snne_guard_context": ...}}``.

    The assessment is in the state, so a graph that is interrupted and resumed draws
    nothing again; call ``interrupt`` in a node of its own, after this one.

    Args:
        guard: A guard on the model that answers in this graph, with the same tools.

    Raises:
        InputError: In a run, the last message is not the model's, or has no id.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.messages import HumanMessage
        >>> guard = SNNEGuard(FakeListChatModel(responses=["Rome"]), n=3, threshold=0.4)
        >>> answered = [
        ...     HumanMessage("The capital of Italy?"),
        ...     AIMessage("Rome", id="1"),
        ... ]
        >>> update = uncertainty_node(guard).invoke({"messages": answered})
        >>> update["messages"][0].response_metadata["snne_guard"]["decision"]
        'accept'
    """

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - the graph's
        prompt, answer = _conversation(state)
        if _record(answer) is not None:
            return {}
        found = guard.assess(prompt, answer, context=_documents(config))
        return _measured(answer, found)

    async def anode(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - as above
        prompt, answer = _conversation(state)
        if _record(answer) is not None:
            return {}
        found = await guard.aassess(prompt, answer, context=_documents(config))
        return _measured(answer, found)

    return RunnableLambda(node, anode, name="uncertainty")


def route_on_uncertainty(
    *, accept: str, uncertain: str, unscored: str | None = None
) -> Callable[[Any], str]:
    """Return a conditional edge that follows the decision on the last answer.

    Args:
        accept: Node to go to with an accepted answer; ``END`` is one.
        uncertain: Node to go to with any other answer.
        unscored: Node to go to with an answer that passed without a score: it calls
            tools, it was not sampled, or ``on_error="accept"``. None: ``uncertain``,
            where answers of a guard without a threshold go, too.

    Raises:
        InputError: In a run, no guard has measured the model's last message.

    Example:
        >>> from langgraph.graph import END
        >>> route = route_on_uncertainty(accept=END, uncertain="person")
        >>> metadata = {"snne_guard": {"decision": "flag"}}
        >>> route({"messages": [AIMessage("Rome", response_metadata=metadata)]})
        'person'
    """
    nodes = {"accept": accept, "unscored": unscored or uncertain}

    def route(state: Any) -> str:  # noqa: ANN401 - the graph's
        answers = [m for m in _messages(state) if isinstance(m, AIMessage)]
        record = _record(answers[-1]) if answers else None
        if record is None:
            msg = "not measured by a guard; put uncertainty_node before this edge"
            raise InputError(msg)
        return nodes.get(record["decision"], uncertain)

    # LangGraph reads from it where the edge may lead.
    route.__annotations__["return"] = Literal[(*nodes.values(), uncertain)]
    return route


def _messages(state: Any) -> list[BaseMessage]:  # noqa: ANN401 - the graph's
    """Return the messages of a state: a mapping, or an object with fields."""
    return list(state["messages"] if isinstance(state, Mapping) else state.messages)


def _conversation(state: Any) -> tuple[list[BaseMessage], AIMessage]:  # noqa: ANN401 - likewise
    """Return the prompt and the model's answer."""
    messages = _messages(state)
    answer = messages[-1] if messages else None
    if not isinstance(answer, AIMessage) or not answer.id:
        msg = "expected the last message to be the model's answer, with an id"
        raise InputError(msg)
    return messages[:-1], answer


def _documents(config: RunnableConfig) -> Any:  # noqa: ANN401 - texts or Documents
    return (config.get("metadata") or {}).get("snne_guard_context")


def _record(message: AIMessage) -> dict[str, Any] | None:
    return message.response_metadata.get("snne_guard")


def _measured(answer: AIMessage, assessment: Assessment) -> dict[str, Any]:
    record = {"snne_guard": assessment.to_metadata()}
    update = {"response_metadata": {**answer.response_metadata, **record}}
    return {"messages": [answer.model_copy(update=update)]}
