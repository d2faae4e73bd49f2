"""What is asked of a local Hugging Face model, and what it gives back: plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from snne_guard.errors import ConfigurationError
from snne_guard.types import FloatArray

__all__ = ["Completion", "GenerationSettings", "Token", "check_whole"]

_SEEDS = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    r"""How replies are drawn.

    The defaults draw from the model's own distribution: no temperature, no top-k, no
    top-p. That is what samples for an uncertainty are drawn from.

    Attributes:
        max_tokens: Tokens that a reply may have, at least 1. Fewer where the model's
            context window ends before that.
        temperature: Divides the logits; 0 takes the likeliest token each time.
        top_k: Draw among the ``top_k`` likeliest tokens only, None among all.
        top_p: Draw among the likeliest tokens that together have at least this
            probability, in (0, 1]; None among all. After ``top_k``, as in
            ``transformers``.
        stop: Texts at which a reply ends; they are not part of it.
        seed: Fixes what is drawn: each reply has a stream of random numbers of its
            own, made from the seed and the prompt, so a reply depends neither on how
            many others are drawn with it nor on the device's generator. None draws
            anew each time.
        hidden_layer: Layer of which each reply's last token gives its hidden state: 0
            for the embeddings, 1 for the first layer, -1 for the last one. None for no
            hidden states.

    Raises:
        ConfigurationError: If a value makes no sense.

    Example:
        >>> GenerationSettings(temperature=0.7, stop=("\n",)).stop
        ('\n',)
    """

    max_tokens: int = 256
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    hidden_layer: int | None = None

    def __post_init__(self) -> None:
        check_whole("max_tokens", self.max_tokens, least=1)
        _check_number("temperature", self.temperature, "at least 0")
        if self.temperature < 0:
            raise ConfigurationError(_told("temperature", "at least 0", self))
        if self.top_k is not None:
            check_whole("top_k", self.top_k, least=1)
        if self.top_p is not None:
            _check_number("top_p", self.top_p, "in (0, 1]")
            if not 0 < self.top_p <= 1:
                raise ConfigurationError(_told("top_p", "in (0, 1]", self))
        if not _are_texts(self.stop):
            raise ConfigurationError(_told("stop", "texts that are not empty", self))
        if self.seed is not None:
            check_whole("seed", self.seed)
        if self.hidden_layer is not None:
            check_whole("hidden_layer", self.hidden_layer)

    @property
    def entropy(self) -> int | None:
        """The seed as a number that is not negative, None where there is none."""
        return None if self.seed is None else self.seed % _SEEDS

    @property
    def is_plain(self) -> bool:
        """Whether it draws from the model's own distribution."""
        return self.temperature == 1 and self.top_k is None and self.top_p in (None, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One drawn token of a reply.

    Attributes:
        id: Its number in the vocabulary.
        text: What it adds to the text; the texts of a reply's tokens, joined, are the
            reply. Empty for the first tokens of a character that takes several.
        logprob: Natural log-probability under the model's own distribution: at
            temperature 1, without top-k and top-p.
        sampling_logprob: The same under the distribution that it was drawn from; 0 at
            temperature 0.
    """

    id: int
    text: str = field(repr=False)
    logprob: float
    sampling_logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One reply of a local model.

    Attributes:
        text: What it says, without the text that ended it.
        tokens: The tokens of that text. The token that ended the reply is none of
            them, so an empty reply has none.
        finish_reason: ``"stop"`` where the model or a stop text ended it, ``"length"``
            where the token limit or the context window did.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens drawn, the one that ended the reply included.
        hidden_state: ``(d,)`` hidden state of the last of ``tokens`` at the layer that
            was asked for; None if none was, or if there is no token.
    """

    text: str = field(repr=False)
    tokens: tuple[Token, ...] = field(default=(), repr=False)
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    hidden_state: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def token_logprobs(self) -> tuple[float, ...]:
        """Log-probabilities under the model's own distribution, in nats."""
        return tuple(token.logprob for token in self.tokens)

    @property
    def sampling_logprobs(self) -> tuple[float, ...]:
        """Log-probabilities under the distribution they were drawn from, in nats."""
        return tuple(token.sampling_logprob for token in self.tokens)


def check_whole(name: str, value: object, *, least: int | None = None) -> None:
    """Check that a setting is a whole number, and not below the least one.

    Raises:
        ConfigurationError: If it is not.
    """
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and (least is None or value >= least)
    ):
        return
    wanted = "a whole number" if least is None else f"a whole number from {least} on"
    msg = f"{name} must be {wanted}; got {value!r}"
    raise ConfigurationError(msg)


def _check_number(name: str, value: object, wanted: str) -> None:
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    ):
        return
    msg = f"{name} must be a number {wanted}; got {value!r}"
    raise ConfigurationError(msg)


def _are_texts(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    texts = cast("Sequence[object]", value)
    return all(isinstance(text, str) and text for text in texts)


def _told(name: str, wanted: str, settings: GenerationSettings) -> str:
    return f"{name} must be {wanted}; got {getattr(settings, name)!r}"
