"""A client of the ``openai`` package as a callable from a prompt to a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snne_guard.errors import ScoringError
from snne_guard.sampling.openai_messages import read_completion

if TYPE_CHECKING:
    import openai

__all__ = ["OpenAIGenerate"]


class OpenAIGenerate:
    """Asks Chat Completions a prompt and returns the text of its reply.

    An LLM as judge, such as ``EntailmentJudge``, is asked through it.

    Args:
        client: ``OpenAI``, ``AzureOpenAI`` or one like them.
        model: Name of the model; at Azure, of the deployment.
        **options: What else the requests carry, under the names of ``create``, such
            as ``temperature=0``.

    Attributes:
        name: The model's name.

    Example:
        >>> generate = OpenAIGenerate(OpenAI(), model="gpt-4o-mini")  # doctest: +SKIP
        >>> generate("Does it follow?")  # doctest: +SKIP
        'neutral'
    """

    def __init__(self, client: openai.OpenAI, *, model: str, **options: Any) -> None:  # noqa: ANN401 - the API's own
        self.name = model
        self._create: Any = client.chat.completions.create
        self._options = options
        self._served = str(getattr(client, "base_url", ""))

    @property
    def cache_key(self) -> str:
        """What its replies depend on besides the prompt; no secret is in it."""
        return repr((self.name, self._served, sorted(self._options.items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    def __call__(self, prompt: str, /) -> str:
        """Return the text of one reply.

        Raises:
            ScoringError: There is no reply in what came back.
            Exception: The client's own errors, unchanged.
        """
        messages = [{"role": "user", "content": prompt}]
        completion = self._create(model=self.name, messages=messages, **self._options)
        samples = read_completion(completion).samples
        if not samples:
            msg = f"expected a reply from {self.name}, got none"
            raise ScoringError(msg)
        return samples[0].text
