"""A causal language model of Hugging Face in this process; no framework is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from threading import Lock
from typing import Any

from snne_guard.checks import check_whole
from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.huggingface.settings import (
    Completion,
    GenerationSettings,
    Model,
    Prompt,
    Tokenizer,
)

_OWN_DISTRIBUTION = GenerationSettings()


class HuggingFaceModel:
    """A loaded causal language model from which many replies are drawn at once.

    The replies of a call are one batch, and those to a prompt share one prefill. Calls
    from several threads wait for one another. The model is never changed. Tokens are
    drawn with torch's global generators: a call with a seed restores their state, and
    is repeatable only while no other thread draws from them.

    Args:
        model: A causal language model of ``transformers``, or of PEFT around one, in
            evaluation mode; its device, precision and quantisation are its own.
        tokenizer: Its tokenizer; messages go through its chat template.

    Attributes:
        name: Where the model was loaded from.

    Raises:
        ConfigurationError: If replies cannot be drawn from the model as it is.

    Example:
        >>> model = HuggingFaceModel.from_pretrained(  # doctest: +SKIP
        ...     "meta-llama/Llama-3.1-8B-Instruct"
        ... )
        >>> question = [{"role": "user", "content": "Who wrote Faust?"}]
        >>> [replies] = model.generate([question], n=10)  # doctest: +SKIP
        >>> replies[0].text, replies[0].token_logprobs  # doctest: +SKIP
        ('Goethe wrote it.', (-0.31, -0.02, -0.11, -0.01, -0.0))
    """

    def __init__(self, model: Model, tokenizer: Tokenizer) -> None:
        unfit = getattr(getattr(model, "config", None), "is_encoder_decoder", True)
        if unfit or model.training:  # dropout would change its replies
            msg = (
                "model must be a causal language model of transformers, in evaluation "
                f"mode (model.eval()); got {type(model).__name__}"
            )
            raise ConfigurationError(msg)
        self.name = str(model.config.name_or_path or type(model).__name__)
        self.model = model
        self.tokenizer = tokenizer
        self._lock = Lock()

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        **options: Any,  # noqa: ANN401 - those of transformers
    ) -> HuggingFaceModel:
        """Load a model from the Hugging Face Hub or from a folder.

        Args:
            name: Such as ``"meta-llama/Llama-3.1-8B-Instruct"``, or a path.
            **options: Those of ``AutoModelForCausalLM.from_pretrained``, such as
                ``dtype``, ``revision`` or ``quantization_config``. Unless given,
                ``device_map`` is ``"auto"`` and ``trust_remote_code`` False.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            OSError: If there is no such model, from ``transformers``.
        """
        try:
            transformers: Any = import_module("transformers")
            import_module("torch")
        except ImportError as error:
            needed = f"{error.name} (for local Hugging Face models)"
            raise MissingExtraError(needed, extra="hf") from error
        # Without a False, transformers asks at the terminal whether code may run.
        options = {"device_map": "auto", "trust_remote_code": False, **options}
        # A tokenizer ignores what only a model takes.
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(name, **options)
        return cls(model, tokenizer)

    @property
    def context_window(self) -> int | None:
        """Tokens that prompt and reply may have together, None if unknown."""
        config = self.model.config.get_text_config()
        window = getattr(config, "max_position_embeddings", None)
        return window if isinstance(window, int) and window > 0 else None

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        settings: GenerationSettings = _OWN_DISTRIBUTION,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[tuple[Completion, ...]]:
        """Draw ``n`` replies to each prompt, and return them by prompt.

        Args:
            prompts: Each a list of messages, which go through the chat template, or a
                text, which the model continues.
            n: Replies to each of them.
            settings: How they are drawn.
            is_over: Asked after each token. Once it returns True the draw ends, and the
                replies are incomplete.

        Raises:
            ConfigurationError: If ``n`` is less than 1.
            InputError: If a prompt is empty or too long.
            Exception: What torch and transformers raise.
        """
        from snne_guard.huggingface.generate import draw, seeded

        check_whole(n, what="n", least=1)
        ids = [_encode(self.tokenizer, prompt) for prompt in prompts]
        for each in ids:
            self._check_length(each)
        if self.context_window is not None:  # the longest prompt leaves the least
            room = self.context_window - max(map(len, ids), default=0)
            settings = replace(settings, max_tokens=min(settings.max_tokens, room))
        with self._lock, seeded(settings.seed, ids):
            options: Any = {"n": n, "settings": settings, "is_over": is_over}
            replies = draw(self.model, self.tokenizer, ids, **options)
        return [tuple(replies[k : k + n]) for k in range(0, len(replies), n)]

    def likelihood(self, prompt: str, continuation: str, /) -> float:
        """Return the natural log-probability of a continuation, all its tokens.

        The prompt is plain text, without a chat template around it, as pTrue has it.
        The continuation is at least one token, and begins where a token does: ``" A"``
        after ``"is:"``, and not ``"nd"`` after ``"a"``.

        Raises:
            InputError: One of them does not fit that, or both are too long.
        """
        from snne_guard.huggingface.generate import token_logprobs

        before = _encode(self.tokenizer, prompt)
        whole = _encode(self.tokenizer, prompt + continuation)
        count = len(whole) - len(before)
        if count < 1 or whole[:-count] != before:
            msg = (
                "expected a continuation of at least one token that begins where a "
                f"token does; got one of {len(continuation)} characters"
            )
            raise InputError(msg)
        self._check_length(whole[:-1])  # the last token is predicted, never read
        with self._lock:
            return math.fsum(token_logprobs(self.model, whole, count))

    def _check_length(self, ids: Sequence[int]) -> None:
        window = self.context_window
        if window is not None and len(ids) >= window:
            msg = (
                f"the prompt has {len(ids)} tokens; {self.name} has a context window "
                f"of {window} tokens for prompt and reply"
            )
            raise InputError(msg)


def _encode(tokenizer: Tokenizer, prompt: Prompt) -> tuple[int, ...]:
    """Return the tokens of a text as it is, or of messages by the chat template."""
    if isinstance(prompt, str):
        encoded = tokenizer(prompt)
    else:
        encoded = tokenizer.apply_chat_template(
            list(prompt), add_generation_prompt=True, return_dict=True
        )
    if not encoded["input_ids"]:
        msg = "the prompt must have at least one token; got none"
        raise InputError(msg)
    return tuple(encoded["input_ids"])
