"""A person's review of a model's turn, in the words of LangChain's own middleware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call

from snne_guard import InputError

__all__ = ["Held", "refusal"]

ANSWER = "answer"
"""What an answer is called among the actions that a person is to review."""
_ALL = ("approve", "edit", "reject", "respond")
_WHOLE = ("approve", "reject")
Reviewed = dict[str, Any]


def refusal(text: str, answer: AIMessage, record: Mapping[str, Any]) -> AIMessage:
    """Return the message in place of an answer that a person has rejected."""
    return AIMessage(
        content=text,
        additional_kwargs={"refusal": text},
        response_metadata={"snne_guard": dict(record)},
        id=answer.id,
        name=answer.name,
    )


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a model call brought and a person is to see first.

    Attributes:
        messages: The model's message, and LangChain's note on a structured answer.
        record: The record of its assessment.
        refusal: What stands in the place of an answer that is rejected.
        structured: Whether an answer of a certain form was asked for; a person takes
            it or leaves it, since it was read already.
        structured_response: What was read.
    """

    messages: Sequence[Any]
    record: Mapping[str, Any]
    refusal: str
    structured: bool = False
    structured_response: Any = None

    @property
    def _message(self) -> AIMessage:
        return cast("AIMessage", self.messages[0])

    @property
    def _calls(self) -> list[ToolCall]:
        """The calls of tools that are reviewed one by one."""
        is_turn = self.record["kind"] == "tool_calls"
        return self._message.tool_calls if is_turn else []

    def ask(self, interrupt: Callable[[Any], Any]) -> Reviewed:
        """Return the update of the agent's state that a person's reply leads to.

        Args:
            interrupt: LangGraph's. A reply that is none is asked for once more.
        """
        request = self.request()
        while True:
            try:
                return self.reviewed(interrupt(request))
            except InputError as error:
                request = self.request(str(error))

    def request(self, error: str | None = None) -> dict[str, Any]:
        """Return what the person is asked: a ``HITLRequest``, and the record."""
        u, threshold = self.record["uncertainty"], self.record["threshold"]
        measured = "could not be scored" if u is None else f"has uncertainty {u:.3f}"
        description = f"The model's turn {measured}; accepted is at most {threshold}."
        allowed = [*(_WHOLE if self.structured else _ALL)]
        actions = [(call["name"], call["args"]) for call in self._calls]
        if not actions:
            actions = [(ANSWER, {"content": self._said()})]
        asked: dict[str, Any] = {
            "action_requests": [
                {"name": name, "args": args, "description": description}
                for name, args in actions
            ],
            "review_configs": [
                {"action_name": name, "allowed_decisions": allowed}
                for name in dict(actions)
            ],
            "uncertainty": dict(self.record),
        }
        return asked if error is None else {**asked, "error": error}

    def _said(self) -> Any:  # noqa: ANN401 - text, or a structured answer's fields
        calls = self._message.tool_calls
        return calls[0]["args"] if calls and self.structured else self._message.text

    def reviewed(self, reply: object) -> Reviewed:
        """Return the update of the agent's state that a person's reply leads to.

        Raises:
            InputError: If the reply is none.
        """
        decisions = self._read(reply)
        words = [str(decision["type"]) for decision in decisions]
        if set(words) == {"approve"}:
            decision = "flag"
        else:
            decision = "refuse" if set(words) == {"reject"} else "fallback"
        record = {**self.record, "decision": decision, "reviewed": words}
        update: Reviewed = {"uncertainty": [record]}
        if self._calls:
            return {**update, "messages": self._turn(decisions, record)}
        if self.structured and decision == "flag":
            update["structured_response"] = self.structured_response
        elif self.structured:
            # Without an answer of that form the loop would go on.
            update["jump_to"] = "end"
        return {**update, "messages": self._answer(decisions[0], record)}

    def _read(self, reply: object) -> list[dict[str, Any]]:
        given = _mapping(reply).get("decisions")
        given = cast("list[object]", given) if isinstance(given, list) else []
        expected = max(1, len(self._calls))
        if len(given) != expected:
            msg = f'expected {{"decisions": [...]}} with {expected} of them'
            raise InputError(msg)
        decisions = [_mapping(decision) for decision in given]
        for decision in decisions:
            self._check(decision)
        return decisions

    def _check(self, decision: Mapping[str, Any]) -> None:
        allowed = _WHOLE if self.structured else _ALL
        kind = decision.get("type")
        if kind not in allowed:
            msg = f"a decision needs a type, one of {', '.join(allowed)}; got {kind!r}"
            raise InputError(msg)
        if kind == "respond" and not isinstance(decision.get("message"), str):
            msg = 'a decision "respond" needs a message'
            raise InputError(msg)
        if kind == "edit":
            args: Any = _mapping(decision.get("edited_action")).get("args")
            if not isinstance(args, dict) or not (self._calls or "content" in args):
                msg = 'a decision "edit" needs an edited_action with its args'
                raise InputError(msg)

    def _answer(
        self, decision: Mapping[str, Any], record: Mapping[str, Any]
    ) -> list[BaseMessage]:
        if decision["type"] == "reject":
            said = decision.get("message") or self.refusal
            return [refusal(said, self._message, record)]
        message = _recorded(self._message, record)
        if decision["type"] == "edit":
            said = str(decision["edited_action"]["args"]["content"])
        elif decision["type"] == "respond":
            said = decision["message"]
        else:
            return [message, *self.messages[1:]]
        # Calls that could not be read are no part of what the person says.
        update: dict[str, Any] = {
            "content": said,
            "tool_calls": [],
            "invalid_tool_calls": [],
        }
        return [message.model_copy(update=update)]

    def _turn(
        self, decisions: Sequence[Mapping[str, Any]], record: Mapping[str, Any]
    ) -> list[BaseMessage]:
        """Return the turn with its calls, those answered that are not to run."""
        pairs = list(zip(self._calls, decisions, strict=True))
        calls = [_edited(call, decision) for call, decision in pairs]
        message = _recorded(self._message, record)
        message = message.model_copy(update={"tool_calls": calls})
        replies = [
            _reply(call, decision)
            for call, decision in pairs
            if decision["type"] in {"reject", "respond"}
        ]
        return [message, *replies]


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _recorded(message: AIMessage, record: Mapping[str, Any]) -> AIMessage:
    metadata = {**message.response_metadata, "snne_guard": dict(record)}
    return message.model_copy(update={"response_metadata": metadata})


def _edited(call: ToolCall, decision: Mapping[str, Any]) -> ToolCall:
    if decision["type"] != "edit":
        return call
    action = decision["edited_action"]
    name = action.get("name", call["name"])
    return tool_call(name=name, args=dict(action["args"]), id=call["id"])


def _reply(call: ToolCall, decision: Mapping[str, Any]) -> ToolMessage:
    responds = decision["type"] == "respond"
    said = decision.get("message")
    if not responds:
        reason = f" with reason: {said}" if said else "; it was not run"
        said = f"A person rejected the call of `{call['name']}`{reason}"
    return ToolMessage(
        content=str(said),
        name=call["name"],
        tool_call_id=str(call["id"]),
        status="success" if responds else "error",
    )
