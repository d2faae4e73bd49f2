"""Views: other ways of putting the question, in which samples are drawn.

Under a different prompt, a model that is wrong is often wrong in a different way, so
wrong answers differ more. The answer itself is never drawn in a view.
"""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from snne_guard.checks import check_function
from snne_guard.errors import ConfigurationError, SamplingError
from snne_guard.text import is_visible
from snne_guard.types import Reply

EXTRA_TOKENS = 512
"""Tokens beyond the user's limit for a sample of which only a part is compared."""

_log = logging.getLogger(__name__)

Messages = list[Any]


@dataclass(frozen=True, slots=True)
class View:
    """One way of putting the question.

    Attributes:
        name: Names it in recordings and calibrations.
        rewrite: Takes a copy of the conversation, a list of messages of LangChain or
            dicts of a request, and returns the one that the model gets; ``SNNEGuard``
            takes dicts with ``role`` and ``content`` too. It must end with the user's
            last turn, reworded or not, and whatever followed it. It must be quick: in
            asynchronous calls it runs on the event loop.
        extract: Takes the text of a reply and returns the part that is compared, None
            where there is none. Samples then have no stop texts, and 512 tokens beyond
            a limit below 2,048. Without ``extract`` the whole text is compared.

    Raises:
        ConfigurationError: ``rewrite`` or ``extract`` is not a plain function.

    Example:
        >>> def ask_twice(messages):
        ...     return [*messages, messages[-1]]
        >>> View("twice", ask_twice).rewritten([{"role": "user", "content": "Why?"}])
        [{'role': 'user', 'content': 'Why?'}, {'role': 'user', 'content': 'Why?'}]
    """

    name: str
    rewrite: Callable[[Messages], Sequence[Any]] = field(hash=False)
    extract: Callable[[str], str | None] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        check_function(self.rewrite, what=f"rewrite of the view {self.name!r}")
        if self.extract is not None:
            check_function(self.extract, what=f"extract of the view {self.name!r}")

    def rewritten(self, messages: Sequence[Any], /) -> Messages:
        """Return the conversation in this view; the given one is not changed.

        Raises:
            SamplingError: The view raised, or did not return a conversation that ends
                with the user's last turn.
        """
        end = _roles_from_last_user_turn(messages)
        try:
            made: object = self.rewrite(copy.deepcopy(list(messages)))
            listed = [*made] if isinstance(made, list | tuple) else []
            if listed and _roles_from_last_user_turn(listed) == end:
                return listed
            why = "did not return messages that end with the user's last turn"
        except Exception as error:  # noqa: BLE001 - a broken view loses only its samples
            why = f"raised {type(error).__name__}"
        msg = f"the view {self.name!r} {why}"
        _log.warning(msg)
        raise SamplingError(msg)

    def read(self, sample: Reply, /) -> Reply:
        """Return a sample drawn in this view, reduced to the part that is compared.

        A part has no log-probabilities, since those are of the whole reply. If there
        is nothing to compare, the sample is unreadable.
        """
        if sample.view != self.name:
            sample = replace(sample, view=self.name)
        ended = sample.refused or sample.truncated or sample.tool_calls is not None
        if self.extract is None or ended:
            return sample
        try:
            text: object = self.extract(sample.text)
        except Exception as error:  # noqa: BLE001 - a broken view loses only its samples
            _log.warning("view %r: extract raised %s", self.name, type(error).__name__)
            text = None
        found = text if isinstance(text, str) else ""
        unreadable = sample.unreadable or not is_visible(found)
        bare = replace(sample, token_logprobs=None, tokens=None)
        return replace(bare, text=found, unreadable=unreadable)


def final_answer(reply: str, /) -> str | None:
    """Return the text after the last "Answer:" of a reply, None without one."""
    parts = _MARKER.split(reply)
    return parts[-1].strip("*_ \t\r\n") or None if len(parts) > 1 else None


def resolve_views(views: Sequence[str | View], /) -> tuple[View, ...]:
    """Return views, those of the package by their names."""
    try:
        return tuple(each if isinstance(each, View) else VIEWS[each] for each in views)
    except KeyError as error:
        known = ", ".join(VIEWS)
        msg = f"expected a View or the name of one ({known}), got {error}"
        raise ConfigurationError(msg) from None


# -- The package's own -----------------------------------------------------------------

_EXAMPLES = (
    ("What is the chemical symbol of gold?", "Au"),
    ("How many days are there in two weeks?", "14"),
    ("Who wrote the play Hamlet?", "William Shakespeare"),
)
_REASONING = (
    "First think step by step, in a few short sentences. Then write the final answer, "
    'in the form that was asked for, alone on the last line after "Answer:".'
)
_MARKER = re.compile(r"(?<![^\W_])answer\s*[*_]*\s*[:：]", re.IGNORECASE)  # noqa: RUF001 - the colon of Chinese


def _examples(messages: Messages) -> Messages:
    start = 0
    while start < len(messages) and role_of(messages[start]) in _SYSTEM:
        start += 1
    turns = [
        {"role": role, "content": text}
        for pair in _EXAMPLES
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    return [*messages[:start], *turns, *messages[start:]]


def _reasoning(messages: Messages) -> Messages:
    for place in reversed(range(len(messages))):
        if role_of(messages[place]) == "user":
            messages[place] = _with_text(messages[place], _REASONING)
            break
    return messages


VIEWS: Mapping[str, View] = {
    "plain": View("plain", list),
    "examples": View("examples", _examples),
    "reasoning": View("reasoning", _reasoning, final_answer),
}
"""The views of the package by name."""


# -- Messages of LangChain, of the openai package, and dicts ---------------------------

_SYSTEM = frozenset({"developer", "system"})
_RESPONSES_PARTS = frozenset({"input_file", "input_image", "input_text"})
"""Types of parts that only OpenAI's Responses API has."""


def field_of(message: object, name: str) -> Any:  # noqa: ANN401 - whatever is there
    """Return a field of a message, None where it has no such field."""
    if isinstance(message, Mapping):
        return message.get(name)
    return getattr(message, name, None)


def role_of(message: object) -> object:
    """Return the speaker of a message; "user" and "assistant" for LangChain's names."""
    role = field_of(message, "role") or field_of(message, "type")
    return {"human": "user", "ai": "assistant"}.get(str(role), role)


def _roles_from_last_user_turn(messages: Sequence[Any]) -> list[object]:
    roles = [role_of(message) for message in messages]
    if "user" not in roles:
        return []
    return roles[-1 - roles[::-1].index("user") :]


def _with_text(message: Any, text: str) -> Any:  # noqa: ANN401 - as it came
    """Return a message with a further paragraph; its other content stays."""
    content = field_of(message, "content")
    if isinstance(content, list | tuple):
        kinds = {field_of(part, "type") for part in content}
        kind = "input_text" if kinds & _RESPONSES_PARTS else "text"
        content = [*content, {"type": kind, "text": text}]
    else:
        content = f"{content or ''}\n\n{text}"
    if isinstance(message, Mapping):
        return {**message, "content": content}
    return message.model_copy(update={"content": content})
