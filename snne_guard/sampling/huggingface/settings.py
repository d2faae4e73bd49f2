"""What is asked of a local model, and what it returns."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any

from snne_guard.errors import ConfigurationError
from snne_guard.types import FloatArray

__all__ = ["Completion", "GenerationSettings", "Token", "check_whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    r"""How replies are drawn.

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
        top_p: Draw among the likeliest tokens that together have at least this
            probability, in (0, 1].
        stop: Texts at which a reply ends; they are not part of it.
        seed: Makes a call with the same prompts and ``n`` repeatable.
        hidden_layer: Layer whose hidden state of the last token is returned: 0 for the
            embeddings, 1 for the first layer, -1 for the last. None for none.

    Raises:
        ConfigurationError: If a value makes no sense.

    Example:
        >>> GenerationSettings(temperature=0.7, stop=("\n",)).stop
        ('\n',)
    """

    max_tokens: int = 256
    temperature: float | None = 1.0
    top_k: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    hidden_layer: int | None = None

    def __post_init__(self) -> None:
        check_whole("max_tokens", self.max_tokens, least=1)
        _check_range("temperature", self.temperature, "a number of at least 0", 0.0)
        if self.top_k is not None:
            check_whole("top_k", self.top_k, least=1)
        _check_range("top_p", self.top_p, "in (0, 1]", math.ulp(0.0), 1.0)
        if not _are_texts(self.stop):
            msg = f"stop must hold texts that are not empty; got {self.stop!r}"
            raise ConfigurationError(msg)
        if self.seed is not None:
            check_whole("seed", self.seed, least=0)
        if self.hidden_layer is not None:
            check_whole("hidden_layer", self.hidden_layer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token of a reply.

    Attributes:
        id: Its number in the vocabulary.
        text: What it adds to the text. Empty for all but the last token of a character
            that takes several, and for special tokens.
        logprob: Natural log-probability under the model's own distribution, before
            temperature, top-k and top-p.
    """

    id: int
    text: str = field(repr=False)
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One reply of a local model.

    Attributes:
        text: The reply, without the text that ended it.
        tokens: The tokens of that text, without the one that ended it.
        finish_reason: ``"stop"`` where the model or a stop text ended the reply,
            ``"length"`` where the token limit or the context window did.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens drawn, the one that ended the reply included.
        hidden_state: ``(d,)`` hidden state of the last of ``tokens`` at the layer that
            was asked for, None if none was or there is no token.
    """

    text: str = field(repr=False)
    tokens: tuple[Token, ...] = field(default=(), repr=False)
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    hidden_state: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def token_logprobs(self) -> tuple[float, ...]:
        """Natural log-probability of each token."""
        return tuple(token.logprob for token in self.tokens)


def check_whole(name: str, value: object, *, least: float = -math.inf) -> None:
    """Check that a setting is a whole number and not below the least one.

    Raises:
        ConfigurationError: If it is not.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return
    wanted = "a whole number" + (f" from {least}" if math.isfinite(least) else "")
    msg = f"{name} must be {wanted}; got {value!r}"
    raise ConfigurationError(msg)


def _check_range(
    name: str,
    value: Any,  # noqa: ANN401 - whatever a user passes
    wanted: str,
    low: float,
    high: float = sys.float_info.max,
) -> None:
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and low <= value <= high:
        return
    msg = f"{name} must be {wanted}; got {value!r}"
    raise ConfigurationError(msg)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(text, str) and text for text in value
    )
