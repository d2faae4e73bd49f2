"""Prompts to tokens: plain text as it is, messages through the chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snne_guard.errors import ConfigurationError, InputError

__all__ = ["Message", "Prompt", "encode"]

Message = Mapping[str, Any]
"""``{"role": "user", "content": "..."}``, as chat templates take it."""

Prompt = str | Sequence[Message]
"""A text that the model goes on with, or messages that it replies to."""


def encode(
    tokenizer: Any,  # noqa: ANN401 - transformers has no types
    prompt: Prompt,
    *,
    chat_template: str | None = None,
) -> tuple[int, ...]:
    """Return the tokens of a prompt.

    A system message that the template does not know, as that of Gemma, is put in
    front of the user's first message.

    Args:
        tokenizer: A tokenizer of ``transformers``.
        prompt: A text, which is read as it is, or messages.
        chat_template: Used instead of the tokenizer's own; an empty one stands for
            none at all: the messages are a text that the model goes on with.

    Raises:
        ConfigurationError: If there are messages and no chat template.
        InputError: If the template refuses the messages, or nothing is left to read.
    """
    if not isinstance(prompt, str) and chat_template == "":
        prompt = "\n".join(str(message["content"]) for message in prompt)
    if isinstance(prompt, str):
        ids = tokenizer(prompt)["input_ids"]
    else:
        ids = _encode_messages(tokenizer, list(prompt), chat_template)
    if not ids:
        msg = "the prompt must have at least one token; got none"
        raise InputError(msg)
    return tuple(map(int, ids))


def _encode_messages(
    tokenizer: Any,  # noqa: ANN401 - see above
    messages: list[Message],
    chat_template: str | None,
) -> list[int]:
    from jinja2 import TemplateError

    if chat_template is None and not tokenizer.chat_template:
        msg = (
            "the tokenizer of this model has no chat template, so it cannot read "
            "messages: pass chat_template=, take an instruction-tuned model, or pass "
            "a text for the model to go on with"
        )
        raise ConfigurationError(msg)
    if not messages:
        msg = "a conversation must have at least one message; got none"
        raise InputError(msg)
    try:
        return _apply(tokenizer, messages, chat_template)
    except TemplateError as error:
        refused = error
    folded = _without_system(messages)
    try:
        if folded is not None:
            return _apply(tokenizer, folded, chat_template)
    except TemplateError as error:
        refused = error
    roles = ", ".join(str(message.get("role")) for message in messages)
    msg = f"the chat template refuses messages with the roles {roles}: {refused}"
    raise InputError(msg) from refused


def _apply(
    tokenizer: Any,  # noqa: ANN401 - see above
    messages: list[Message],
    chat_template: str | None,
) -> list[int]:
    encoded = tokenizer.apply_chat_template(
        messages,
        chat_template=chat_template,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
    )
    ids: list[int] = encoded["input_ids"]
    return ids


def _without_system(messages: list[Message]) -> list[Message] | None:
    """Return the messages with the first one, a system message, in the second."""
    if len(messages) < 2 or messages[0].get("role") != "system":  # noqa: PLR2004 - two messages
        return None
    first, second, *others = messages
    content = f"{first['content']}\n\n{second['content']}"
    return [{**second, "content": content}, *others]
