"""One conversation with the OpenAI API: its answer asked for, its samples drawn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from snne_guard.errors import SamplingError
from snne_guard.sampling.collect import Draw, Reply, one_more_request
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.openai_messages import (
    count_characters,
    last_question,
    to_items,
)
from snne_guard.sampling.openai_requests import Endpoint, acts
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.settings import Settings, rejects_logprobs

__all__ = ["AsyncCall", "Call"]


T = TypeVar("T")
Skip = Callable[[list[Any]], tuple[str | None, tuple[str, ...]]]


def _skip_none(_items: list[Any]) -> tuple[None, tuple[str, ...]]:
    return None, ()


def _nobody_told() -> None:
    pass


@dataclass(slots=True, kw_only=True)
class _Call:
    """One conversation that is answered and sampled; what both twins share.

    Attributes:
        endpoint: Whom to ask.
        items: The conversation.
        own: The user's options for this call.
        plan: Temperature and token limit.
        memory: What was learnt about the provider.
        wants_logprobs: Whether log-probabilities are of use.
        skip: Why this call is not sampled, None if it is.
        reasons: What was not as usual in finding that out.
        repeated: Told when the answer is asked for once more.
        asked: How often the answer was asked for.
        raw: The answer as the client gave it, None before it came.
    """

    endpoint: Endpoint
    items: list[Any]
    own: Mapping[str, Any]
    plan: SamplingPlan
    memory: Memory
    wants_logprobs: bool
    skip: str | None = None
    reasons: tuple[str, ...] = ()
    repeated: Callable[[], object] = _nobody_told
    asked: int = 1
    raw: Any = None

    @classmethod
    def of(
        cls,
        endpoint: Endpoint,
        messages: object,
        options: Mapping[str, Any],
        *,
        plan: SamplingPlan,
        memory: Memory,
        wants_logprobs: bool,
        skip: Skip = _skip_none,
        answers: int = 1,
    ) -> Self:
        """Return a call, its messages and options checked.

        Args:
            endpoint: Whom to ask.
            messages: The conversation.
            options: The user's options for this call.
            plan: Temperature and token limit.
            memory: What was learnt about the provider.
            wants_logprobs: Whether log-probabilities are of use.
            skip: From the messages to why it is not to be sampled, with what was not
                as usual in finding out.
            answers: How many of them the user asks for.

        Raises:
            InputError: If the messages are none.
            ConfigurationError: If an option is not the user's to set.
        """
        items, own = to_items(messages), endpoint.own(options)
        reason, reasons = skip(items)
        if reason is None and acts(own):
            reason = "side_effects"
        elif reason is None and answers > 1:
            reason = "several_answers"
        return cls(
            endpoint=endpoint,
            items=items,
            own=own,
            plan=plan,
            memory=memory,
            wants_logprobs=wants_logprobs,
            skip=reason,
            reasons=reasons,
        )

    @property
    def question(self) -> str | None:
        """Text of the user's last message."""
        return last_question(self.items)

    @property
    def characters(self) -> int:
        """Length of the prompt, all messages together."""
        return count_characters(self.items)

    @property
    def batch(self) -> int:
        """Replies to ask for in one request."""
        if not self.endpoint.api.supports_n:
            return 1
        return self.memory.batch or self.plan.n_samples

    @property
    def answer_first(self) -> bool:
        """Whether the samples wait for the answer."""
        schedule = self.plan.schedule
        if schedule is None:
            return bool(self.own.get("tools"))
        return schedule == "answer_first"

    def settings(self) -> Settings:
        """Return what this provider is known to take."""
        return Settings.known(
            self.memory,
            logprobs=self.wants_logprobs,
            max_tokens=self.endpoint.sets_limit(self.own, self.plan),
        )

    @property
    def added(self) -> dict[str, Any]:
        """What the answer is asked for by us alone: log-probabilities, or nothing."""
        wanted = self.skip is None and self.settings().logprobs
        if not wanted or self.endpoint.asks_logprobs(self.own):
            return {}
        return self.endpoint.added(self.own)

    def answer_request(self, added: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.endpoint.answer(self.items, self.own), **added}

    def sample_request(self, draw: Draw, settings: Settings) -> dict[str, Any]:
        return self.endpoint.sample(
            self.items, self.own, draw, plan=self.plan, settings=settings
        )

    def drops_logprobs(self, error: Exception) -> bool:
        """Return whether the answer may have been refused for what we asked besides."""
        if self.memory.logprobs or rejects_logprobs(error, self.memory) is False:
            return False
        self.asked += 1
        self.repeated()
        return True

    def answered(self, result: object) -> Reply:
        """Return the answer in what came back, and what it cost."""
        reply = self.endpoint.api.read(result)
        if not reply.samples:
            msg = "the provider answered with no reply in it"
            raise SamplingError(msg)
        self.raw = result
        return replace(reply, cost=replace(reply.cost, attempts=self.asked))

    def next_settings(
        self, error: Exception, draw: Draw, settings: Settings
    ) -> Settings:
        """Return what may pass after a rejection, or raise it again."""
        amended = settings.amended(error, n=draw.n, memory=self.memory)
        if amended is None:
            raise error
        one_more_request()
        return amended

    def drawn(self, result: object, settings: Settings) -> Reply:
        settings.learn(self.memory, asked=self.settings())
        return self.endpoint.api.read(result)


class Call(_Call):
    """Asks from threads."""

    def ask(self) -> Reply:
        """Send the user's own request."""
        return self.answered(self.ask_with(self.plainly))

    def ask_with(self, send: Callable[..., T]) -> T:
        """Send it in the user's own way, once more without what we ask besides.

        Args:
            send: Takes what is asked besides by name.
        """
        if added := self.added:
            try:
                return send(**added)
            except Exception as error:
                if not self.drops_logprobs(error):
                    raise
        return send()

    def plainly(self, **added: Any) -> object:  # noqa: ANN401 - the API's own
        """Send it as the client's ``create`` does."""
        return self.endpoint.ask(**self.answer_request(added))

    def send(self, draw: Draw) -> Reply:
        """Send one request for samples."""
        settings = self.settings()
        while True:
            try:
                result = self.endpoint.draw(**self.sample_request(draw, settings))
            except Exception as error:  # noqa: BLE001 - raised again where nothing helps
                settings = self.next_settings(error, draw, settings)
            else:
                return self.drawn(result, settings)


class AsyncCall(_Call):
    """The twin of ``Call`` for tasks."""

    async def ask(self) -> Reply:
        """Send the user's own request."""
        return self.answered(await self.ask_with(self.plainly))

    async def ask_with(self, send: Callable[..., Awaitable[T]]) -> T:
        """Send it in the user's own way, once more without what we ask besides.

        Args:
            send: Takes what is asked besides by name.
        """
        if added := self.added:
            try:
                return await send(**added)
            except Exception as error:
                if not self.drops_logprobs(error):
                    raise
        return await send()

    async def plainly(self, **added: Any) -> object:  # noqa: ANN401 - the API's own
        """Send it as the client's ``create`` does."""
        return await self.endpoint.ask(**self.answer_request(added))

    async def send(self, draw: Draw) -> Reply:
        """Send one request for samples."""
        settings = self.settings()
        while True:
            try:
                result = await self.endpoint.draw(**self.sample_request(draw, settings))
            except Exception as error:  # noqa: BLE001 - raised again where nothing helps
                settings = self.next_settings(error, draw, settings)
            else:
                return self.drawn(result, settings)
