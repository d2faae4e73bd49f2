"""What is asked of a local model, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snne_guard.checks import check_number, check_whole
from snne_guard.errors import ConfigurationError
from snne_guard.types import FloatArray

Model = Any
"""A causal language model of ``transformers``, which has no usable types."""

Tokenizer = Any
"""Its tokenizer."""

Message = Mapping[str, Any]
"""``{"role": "user", "content": "..."}``, as chat templates take it."""

Prompt = str | Sequence[Message]
"""A text that the model continues, or messages that it replies to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How replies are drawn.

    The defaults draw from the model's own distribution, as the samples of a guard do:
    temperature 1, no top-k, no top-p, and none of the penalties that the model's
    ``generation_config`` may set.

    Attributes:
        max_tokens: Tokens that a reply may have, at least 1; fewer where the context
            window ends before that.
        temperature: Divides the logits; 0 takes the likeliest token each time. None
            draws as the model's ``generation_config`` says: its temperature, top-k,
            top-p, min-p and penalties, or greedily where it does not sample.
        top_k: Draw among this many of the likeliest tokens.
        top_p: Draw among the likeliest tokens with this probability, in (0, 1].
        stop: Texts at which a reply ends, beside the model's own; they are not part of
            it.
        seed: Makes a call with the same prompts and ``n`` repeatable.
        hidden_layer: Layer whose hidden state of the last token is returned: 0 for the
            embeddings, 1 for the first layer, -1 for the last. None for none.

    Raises:
        ConfigurationError: If a value is out of range.
    """

    max_tokens: int = 256
    temperature: float | None = 1.0
    top_k: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    hidden_layer: int | None = None

    def __post_init__(self) -> None:
        check_whole(self.max_tokens, what="max_tokens", least=1)
        if self.temperature is not None:
            check_number(self.temperature, what="temperature", least=0)
        if self.top_k is not None:
            check_whole(self.top_k, what="top_k", least=1)
        if self.top_p is not None:
            check_number(self.top_p, what="top_p", above=0, most=1)
        if not all(self.stop):  # it would end each reply before it began
            msg = f"expected stop to be texts that are not empty, got {self.stop!r}"
            raise ConfigurationError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One reply of a local model.

    Attributes:
        text: The reply, without the text that ended it.
        tokens: What each token adds to the text, without the token that ended it. Empty
            for all but the last token of a character that takes several, and for
            special tokens.
        token_ids: Their numbers in the vocabulary.
        token_logprobs: Their natural log-probabilities under the model's own
            distribution, before temperature, top-k and top-p.
        finish_reason: ``"stop"`` where the model or a stop text ended the reply,
            ``"length"`` where the token limit or the context window did.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens drawn, the one that ended the reply included.
        hidden_state: ``(d,)`` hidden state of the last of ``tokens`` at
            ``hidden_layer``; None without such a layer, or without a token.
    """

    text: str = field(repr=False)
    tokens: tuple[str, ...] = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    token_logprobs: tuple[float, ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    hidden_state: FloatArray | None = field(default=None, repr=False, compare=False)
