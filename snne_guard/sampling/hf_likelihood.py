"""How likely a local model finds a text to go on in a certain way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from snne_guard.errors import InputError
from snne_guard.sampling.hf_load import arguments_of, window_of
from snne_guard.sampling.hf_prompts import encode
from snne_guard.sampling.huggingface import HuggingFaceModel

__all__ = ["HuggingFaceLikelihood"]


class HuggingFaceLikelihood:
    """The probability that a local model gives a continuation: a ``Likelihood``.

    The prompt is plain text that the model goes on with, no chat template around it, as
    pTrue has it. Prompt and continuation are read in one pass.

    Args:
        model: The model, or a pipeline or LangChain class around one, as
            ``HuggingFaceModel.of`` takes it.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        ConfigurationError: If there is no local model in it.

    Example:
        >>> model = HuggingFaceModel.from_pretrained(  # doctest: +SKIP
        ...     "meta-llama/Llama-3.1-8B-Instruct"
        ... )
        >>> likelihood = HuggingFaceLikelihood(model)  # doctest: +SKIP
        >>> likelihood("The capital of France is", " Paris")  # doctest: +SKIP
        -0.105
    """

    def __init__(self, model: object) -> None:
        local = HuggingFaceModel.of(model)
        self._model: Any = local.model
        self._tokenizer: Any = local.tokenizer
        self._accepts = arguments_of(local.model)
        self._window = window_of(local.model)

    def __call__(self, prompt: str, continuation: str, /) -> float:
        """Return the natural log-probability of the continuation, all its tokens.

        Raises:
            InputError: As for ``token_logprobs``.
        """
        return math.fsum(self.token_logprobs(prompt, continuation))

    def token_logprobs(self, prompt: str, continuation: str, /) -> tuple[float, ...]:
        """Return the natural log-probability of each token of the continuation.

        Args:
            prompt: What the model has read before.
            continuation: Text of at least one token. It begins where a token does:
                ``" A"`` after ``"is:"``, and not ``"nd"`` after ``"a"``.

        Returns:
            One number of at most 0 a token, under the model's own distribution.

        Raises:
            InputError: The prompt or the continuation has no tokens, the continuation
                does not begin where a token does, or both are too long for the model.
        """
        before, after = split_tokens(self._tokenizer, prompt, continuation)
        length = len(before) + len(after)
        if self._window is not None and length > self._window:
            msg = (
                f"expected prompt and continuation of at most {self._window} tokens, "
                f"got {length}"
            )
            raise InputError(msg)
        return self._read(before, after)

    def _read(self, before: Sequence[int], after: Sequence[int]) -> tuple[float, ...]:
        import torch

        # The last token is only predicted, never read; of the others we need the
        # logits from the prompt's last token on.
        given: dict[str, Any] = {}
        if "logits_to_keep" in self._accepts:
            given["logits_to_keep"] = len(after)
        with torch.inference_mode():
            ids = torch.tensor([[*before, *after[:-1]]], device=self._model.device)
            output = self._model(
                input_ids=ids, use_cache=False, return_dict=True, **given
            )
            logits = output.logits[0, -len(after) :].float()
            chosen = torch.tensor(after, device=logits.device)[:, None]
            found = torch.log_softmax(logits, dim=-1).gather(1, chosen)[:, 0]
        stacked: Any = found.double()  # whose tolist() says no more than "a list"
        values: list[float] = stacked.tolist()
        # Rounding may leave a probability a hair above 1.
        return tuple(min(value, 0.0) for value in values)


def split_tokens(
    tokenizer: Any,  # noqa: ANN401 - transformers has no types
    prompt: str,
    continuation: str,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tokens of a prompt and those of what follows it.

    They are those of both together where that leaves the prompt's own as they are.
    Where the two would grow into one token, which a model that has read the prompt
    cannot say, the continuation is cut by itself.

    Raises:
        InputError: One of them has no tokens, or the continuation cut by itself reads
            as another text.
    """
    before = encode(tokenizer, prompt)
    whole = encode(tokenizer, prompt + continuation)
    if whole[: len(before)] == before and len(whole) > len(before):
        return before, whole[len(before) :]
    own = tokenizer(continuation, add_special_tokens=False)["input_ids"]
    after = tuple(map(int, own))
    if not after or _text(tokenizer, before + after) != (
        _text(tokenizer, before) + continuation
    ):
        msg = (
            "expected a continuation of at least one token that begins where a token "
            f"does, got {continuation!r}"
        )
        raise InputError(msg)
    return before, after


def _text(tokenizer: Any, ids: Sequence[int]) -> str:  # noqa: ANN401 - see above
    text: str = tokenizer.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text
