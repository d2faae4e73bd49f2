"""Prompts to tokens, and the tokens of a reply to text, up to a stop text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface.loading import Tokenizer

__all__ = ["Message", "Prompt", "ReplyText", "decode", "encode"]

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"

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


def decode(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Return the text of tokens; special ones have none."""
    text: str = tokenizer.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text


class ReplyText:
    """The text of one reply, which grows token by token up to a stop text.

    Args:
        tokenizer: A tokenizer of ``transformers``.
        stop: Texts at which the reply ends; they are not part of it.

    Attributes:
        text: The text so far.
        pieces: What each token added to it; empty while a character that takes
            several tokens is not complete.
        stopped: Whether a stop text has ended it.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self.text = ""
        self.pieces: list[str] = []
        self.stopped = False
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._ids: list[int] = []
        # The text of a token may depend on the one before it, so new tokens are
        # decoded together with the last ones, those from ``_context`` to ``_read``.
        self._context = 0
        self._read = 0

    def push(self, token_id: int) -> bool:
        """Add a token; return whether a stop text has ended the reply."""
        if not self.stopped:
            self._ids.append(token_id)
            self.pieces.append("")
            self._append(self._new_text())
        return self.stopped

    def finish(self) -> bool:
        """Add what was held back as incomplete; return whether a stop text ended it."""
        if not self.stopped and self.pieces:
            self._append(self._new_text(final=True))
        return self.stopped

    @property
    def certain(self) -> int:
        """Length of the part of the text that no stop text can still cut off."""
        if self.stopped:
            return len(self.text)
        return max(0, len(self.text) - max(map(len, self._stop), default=1) + 1)

    def _new_text(self, *, final: bool = False) -> str:
        known = decode(self._tokenizer, self._ids[self._context : self._read])
        text = decode(self._tokenizer, self._ids[self._context :])
        if len(text) <= len(known) or (text.endswith(_INCOMPLETE) and not final):
            return ""
        self._context, self._read = self._read, len(self._ids)
        return text[len(known) :]

    def _append(self, piece: str) -> None:
        if not piece:
            return
        unread = len(self.text)
        self.text += piece
        self.pieces[-1] = piece
        places = [
            self.text.find(stop, max(0, unread - len(stop) + 1)) for stop in self._stop
        ]
        if found := [place for place in places if place >= 0]:
            self.stopped = True
            self._shorten(min(found))

    def _shorten(self, length: int) -> None:
        self.text = self.text[:length]
        kept, start = list[str](), 0
        for piece in self.pieces:
            if start >= length:
                break
            kept.append(piece[: length - start])
            start += len(piece)
        self.pieces = kept
