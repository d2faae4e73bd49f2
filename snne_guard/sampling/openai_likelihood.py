"""How likely a model behind OpenAI's chat API finds a one-word reply."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from snne_guard.errors import InputError, SamplingError
from snne_guard.sampling.hf_settings import check_whole
from snne_guard.sampling.openai_requests import Endpoint
from snne_guard.sampling.options import cleaned, unstored
from snne_guard.sampling.reading import as_mapping

if TYPE_CHECKING:
    import openai

__all__ = ["OpenAILikelihood"]

_LIMITS = ("max_tokens", "max_completion_tokens")


class OpenAILikelihood:
    """The probability that a chat model's reply begins with a word: a ``Likelihood``.

    A chat API does not go on with a text of ours, so this is not quite what pTrue asks
    of a local model. The prompt is sent as the user's message, one token is drawn, and
    the likeliest tokens in its place are looked at: those that read as the continuation
    but for white space count together. One request a call, of one token.

    Args:
        client: ``openai.OpenAI``, ``openai.AzureOpenAI``, or a client like them.
        model: Name of the model; at Azure, of the deployment.
        top: Likeliest tokens that are asked for; OpenAI gives at most 20.
        options: What your own requests carry besides. A ``max_completion_tokens`` among
            them is set to 1 in place of ``max_tokens``.

    Raises:
        ConfigurationError: If an option makes no sense.

    Example::

        likelihood = OpenAILikelihood(OpenAI(), model="gpt-4.1-mini")
        p_true(p_true_logprob(likelihood, question, answer, samples))
    """

    def __init__(
        self,
        client: openai.OpenAI,
        *,
        model: str,
        top: int = 20,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_whole("top", top, least=1)
        self._endpoint = Endpoint.of(
            client, model=model, api="chat", options=options, asynchronous=False
        )
        self._top = top

    def __call__(self, prompt: str, continuation: str, /) -> float:
        """Return the natural log-probability that the reply begins so.

        Args:
            prompt: The user's message.
            continuation: One token, white space around it aside, such as ``" A"``.

        Raises:
            openai.OpenAIError: What the request fails with, unchanged.
            SamplingError: If the provider gives no likeliest tokens, or the
                continuation is not among them: then it is less likely than any.
            InputError: If the continuation is empty.
        """
        word = continuation.strip()
        if not word:
            msg = f"expected a continuation with a word in it, got {continuation!r}"
            raise InputError(msg)
        likeliest = self._likeliest(prompt)
        found = [logprob for text, logprob in likeliest if text == word]
        if not found:
            msg = (
                f"expected {word!r} among the {len(likeliest)} likeliest first tokens "
                f"of the reply; it is at most as likely as the last of them, which has "
                f"a probability of {math.exp(likeliest[-1][1]):.2g}"
            )
            raise SamplingError(msg)
        top = max(found)
        return min(top + math.log(math.fsum(math.exp(one - top) for one in found)), 0.0)

    def _likeliest(self, prompt: str) -> list[tuple[str, float]]:
        """Return the likeliest first tokens of a reply, the likeliest first."""
        reply = as_mapping(_fields(self._endpoint.ask(**self._request(prompt))))
        choices = _items(reply.get("choices"))
        logprobs = as_mapping(choices[0].get("logprobs")) if choices else {}
        tokens = _items(logprobs.get("content"))
        entries = _items(tokens[0].get("top_logprobs")) if tokens else []
        if not entries:
            msg = "the provider gave no likeliest tokens (top_logprobs) with its reply"
            raise SamplingError(msg)
        found = [(str(one["token"]).strip(), float(one["logprob"])) for one in entries]
        return sorted(found, key=lambda one: -one[1])

    def _request(self, prompt: str) -> dict[str, Any]:
        endpoint = self._endpoint
        own = cleaned(
            endpoint.own({}), nested=("extra_body",), limits=_LIMITS, max_tokens=1
        )
        limit = {} if any(name in own for name in _LIMITS) else {"max_tokens": 1}
        asked = {"temperature": 1.0, "logprobs": True, "top_logprobs": self._top}
        message = {"role": "user", "content": prompt}
        request = endpoint.answer([message], {**own, **limit, **asked})
        return unstored(request) if endpoint.stores else request


def _fields(value: Any) -> object:  # noqa: ANN401 - the client's own
    dump = getattr(value, "model_dump", None)
    return dump(warnings=False) if callable(dump) else value


def _items(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [as_mapping(one) for one in cast("list[object]", value)]
