"""Prompts to tokens: a text as it is, messages through the chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface.loading import Tokenizer

__all__ = ["Message", "Prompt", "encode"]

Message = Mapping[str, Any]
"""``{"role": "user", "content": "..."}``, as chat templates take it."""

Prompt = str | Sequence[Message]
"""A text that the model continues, or messages that it replies to."""


def encode(
    tokenizer: Tokenizer, prompt: Prompt, *, chat_template: str | None = None
) -> tuple[int, ...]:
    """Return the tokens of a prompt.

    A system message that the template refuses, as Gemma's does, is put in front of the
    first message of the user.

    Args:
        tokenizer: A tokenizer of ``transformers``.
        prompt: A text, which is taken as it is, or messages.
        chat_template: Used in place of the tokenizer's own. With ``""`` the contents
            of the messages, one a line, are a text that the model continues.

    Raises:
        ConfigurationError: If there are messages and no chat template.
        InputError: If the template refuses the messages, or there are no tokens.
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
    tokenizer: Tokenizer, messages: list[Message], chat_template: str | None
) -> list[int]:
    from jinja2 import TemplateError

    if chat_template is None and not tokenizer.chat_template:
        msg = (
            "the tokenizer of this model has no chat template, so it cannot read "
            "messages: pass chat_template=, or use an instruction-tuned model; with "
            'chat_template="" the model continues the text of the messages'
        )
        raise ConfigurationError(msg)
    if not messages:
        msg = "a conversation must have at least one message; got none"
        raise InputError(msg)
    try:
        return _apply_template(tokenizer, messages, chat_template)
    except TemplateError as error:
        refused = error
    if len(messages) > 1 and messages[0].get("role") == "system":
        try:
            return _apply_template(tokenizer, _fold_system(messages), chat_template)
        except TemplateError as error:
            refused = error
    roles = ", ".join(str(message.get("role")) for message in messages)
    msg = f"the chat template refuses messages with the roles {roles}: {refused}"
    raise InputError(msg) from refused


def _apply_template(
    tokenizer: Tokenizer, messages: list[Message], chat_template: str | None
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


def _fold_system(messages: list[Message]) -> list[Message]:
    """Put the text of the first message, a system message, into the second."""
    system, first, *others = messages
    content = f"{system['content']}\n\n{first['content']}"
    return [{**first, "content": content}, *others]
