"""Prompts to tokens, and the tokens of a reply to text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snne_guard.errors import InputError

__all__ = [
    "Message",
    "Model",
    "Prompt",
    "Tokenizer",
    "context_window",
    "decode",
    "encode",
    "end_ids",
    "token_texts",
]

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""What tokenizers show for a character of which tokens are missing."""

Model = Any
"""A causal language model of ``transformers``, which has no usable types."""

Tokenizer = Any
"""Its tokenizer."""

Message = Mapping[str, Any]
"""``{"role": "user", "content": "..."}``, as chat templates take it."""

Prompt = str | Sequence[Message]
"""A text that the model continues, or messages that it replies to."""


def encode(tokenizer: Tokenizer, prompt: Prompt) -> tuple[int, ...]:
    """Return the tokens of a text as it is, or of messages by the chat template.

    Raises:
        InputError: If there are no tokens.
    """
    if isinstance(prompt, str):
        encoded = tokenizer(prompt)
    else:
        encoded = tokenizer.apply_chat_template(
            list(prompt), add_generation_prompt=True, return_dict=True
        )
    if not encoded["input_ids"]:
        msg = "the prompt must have at least one token; got none"
        raise InputError(msg)
    return tuple(map(int, encoded["input_ids"]))


def decode(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Return the text of tokens; special ones have none."""
    text: str = tokenizer.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text


def token_texts(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return what each token adds to the text.

    Where a character takes several tokens, the last of them adds it.
    """
    texts: list[str] = []
    # The text of a token may depend on those before it, so new tokens are decoded
    # together with the last ones that have added a text, from ``context`` to ``read``.
    context = read = 0
    for end in range(1, len(ids) + 1):
        known = decode(tokenizer, ids[context:read])
        text = decode(tokenizer, ids[context:end])
        if text.endswith(_INCOMPLETE) and end < len(ids):
            texts.append("")
            continue
        texts.append(text[len(known) :])
        if texts[-1]:
            context, read = read, end
    return texts


def end_ids(model: Model, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the tokens that end a reply; chat models often have several."""
    configured = model.generation_config.eos_token_id
    several = configured if isinstance(configured, list) else [configured]
    ids = [*several, tokenizer.eos_token_id]
    return tuple(dict.fromkeys(int(each) for each in ids if each is not None))


def context_window(model: Model) -> int | None:
    """Return how many tokens prompt and reply may have together, None if unknown."""
    window = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window if isinstance(window, int) and window > 0 else None
