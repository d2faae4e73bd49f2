"""What a guard has learnt about its provider, shared by all of its calls."""

from __future__ import annotations

import threading

from snne_guard._forks import begin_in_forks

__all__ = ["Memory"]


class Memory:
    """Facts about the provider that spare later calls a rejected request.

    It holds no question, no answer and no result: a guard whose memory is empty makes
    the same decisions, only with more requests.

    Attributes:
        batch: Replies that one request brought at most, None before it is known.
        logprobs: Whether log-probabilities come, None before it is known.
        temperature: False where the provider rejects one, else None.
        max_tokens: False where the provider rejects a limit of this name, else None.
    """

    def __init__(self) -> None:
        self.batch: int | None = None
        self.logprobs: bool | None = None
        self.temperature: bool | None = None
        self.max_tokens: bool | None = None
        begin_in_forks(self)

    def begin(self) -> None:
        """Keep what is known, under a lock that nobody holds."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        """Start anew in another process; a lock cannot travel."""
        return (Memory, ())

    def learn_batch(self, batch: int, *, asked: int) -> None:
        """Remember what a set of ``asked`` replies showed about the batch size."""
        with self._lock:
            if batch < asked:
                self.batch = batch if self.batch is None else min(self.batch, batch)

    def settle_logprobs(self, *, seen: bool) -> bool:
        """Settle once whether log-probabilities come, and return what is settled."""
        with self._lock:
            if self.logprobs is None:
                self.logprobs = seen
            return self.logprobs
