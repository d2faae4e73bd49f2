"""What a request asks for that a provider may reject, and what to ask for then."""

from __future__ import annotations

from dataclasses import dataclass, replace

from snne_guard.sampling.memory import Memory
from snne_guard.sampling.retry import blamed, is_bad_request, rejects

__all__ = ["Settings", "rejects_logprobs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a request for samples asks for besides the user's own options.

    Attributes:
        logprobs: Whether log-probabilities are asked for.
        temperature: Whether the temperature is set.
        max_tokens: Whether a token limit is set under this name, which reasoning
            models reject.

    Example:
        >>> memory = Memory()
        >>> settings = Settings.known(memory, logprobs=True)
        >>> refused = TypeError("got an unexpected keyword argument 'temperature'")
        >>> settings.amended(refused, n=1, memory=memory)
        Settings(logprobs=True, temperature=False, max_tokens=False)
    """

    logprobs: bool
    temperature: bool
    max_tokens: bool = False

    @classmethod
    def known(
        cls, memory: Memory, *, logprobs: bool, max_tokens: bool = False
    ) -> Settings:
        """Return what a provider is known to take.

        Args:
            memory: What was learnt about it.
            logprobs: Whether log-probabilities are wanted.
            max_tokens: Whether there is a token limit to set under that name.
        """
        return cls(
            logprobs=logprobs and memory.logprobs is not False,
            temperature=memory.temperature is not False,
            max_tokens=max_tokens and memory.max_tokens is not False,
        )

    def amended(
        self, error: BaseException, *, n: int, memory: Memory
    ) -> Settings | None:
        """Return settings with which a rejected request may pass, None if none may.

        Args:
            error: Why the request failed.
            n: Replies that it asked for.
            memory: What was learnt about the provider.
        """
        if not is_bad_request(error):
            return None
        if self.temperature and rejects(error, "temperature"):
            return replace(self, temperature=False)
        if self.max_tokens and rejects(error, "max_tokens"):
            return replace(self, max_tokens=False)
        optional = self.logprobs and not memory.logprobs
        unexplained = n == 1 and blamed(error) is None
        if optional and (unexplained or "logprob" in str(error).lower()):
            return replace(self, logprobs=False)
        return None

    def learn(self, memory: Memory, *, asked: Settings) -> None:
        """Remember what a provider does not take, once a request has passed.

        Args:
            memory: Where it is remembered.
            asked: The settings that were tried first.
        """
        if asked.logprobs and not self.logprobs:
            memory.settle_logprobs(seen=False)
        if not self.temperature:
            memory.temperature = False
        if asked.max_tokens and not self.max_tokens:
            memory.max_tokens = False


def rejects_logprobs(error: BaseException, memory: Memory) -> bool | None:
    """Return whether an answer was refused for the log-probabilities asked for.

    An answer must not fail for what only the guard wanted, so the same is asked once
    more without them also where the provider does not say why.

    Args:
        error: Why the request failed.
        memory: Where it is remembered, if the provider says so.

    Returns:
        None where it refuses the request and does not say why.
    """
    if is_bad_request(error) and "logprob" in str(error).lower():
        memory.settle_logprobs(seen=False)
        return True
    return rejects(error, "logprobs")
