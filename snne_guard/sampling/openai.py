"""Drawing from the OpenAI API through the ``openai`` package, nothing in between.

It serves whatever speaks the same protocol: Azure, llama.cpp, vLLM, Ollama, TGI,
SGLang, LiteLLM, OpenRouter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from snne_guard.sampling.gather import Gathering, agather, gather
from snne_guard.sampling.limiter import Limiter
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.openai_messages import Messages
from snne_guard.sampling.openai_requests import Endpoint
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.types import ResponseSet, Schedule

if TYPE_CHECKING:
    import openai

__all__ = ["ApiName", "AsyncOpenAISampler", "OpenAISampler"]

ApiName = Literal["chat", "responses"]
"""Chat Completions, or the Responses API."""

C = TypeVar("C", Call, AsyncCall)


class _Sampler:
    """What both twins share: whom they ask, under which limits, what was learnt."""

    def __init__(self, endpoint: Endpoint, *, logprobs: bool, **limits: Any) -> None:  # noqa: ANN401 - the plan checks them
        self._endpoint, self._logprobs = endpoint, logprobs
        self._limiter = Limiter(limits.pop("max_concurrency"))
        self._plan = SamplingPlan(**limits)
        self._memory = Memory()

    def _call(self, kind: type[C], messages: Messages, options: Mapping[str, Any]) -> C:
        return kind.of(
            self._endpoint,
            messages,
            options,
            plan=self._plan,
            memory=self._memory,
            wants_logprobs=self._logprobs,
        )

    def _gathering(self, call: Call | AsyncCall) -> Gathering:
        return Gathering(
            plan=self._plan,
            memory=self._memory,
            limiter=self._limiter,
            batch=call.batch,
            question=call.question,
            answer_first=call.answer_first,
            skip=call.skip,
        )


class OpenAISampler(_Sampler):
    """Draws an answer and samples of it from the OpenAI API.

    The answer is the user's own request, the client's retries included. The samples
    are drawn at ``temperature``, store nothing, run no tools at the provider, and
    have one retry layer of their own. Nothing that was billed is asked for again.

    Args:
        client: ``openai.OpenAI``, ``openai.AzureOpenAI``, or a client like them.
        model: Name of the model; at Azure, of the deployment.
        n: Members of the response set, at least 2.
        include_answer: Whether the answer is one of them; else ``n`` samples are drawn
            besides it.
        temperature: Sampling temperature of the samples.
        api: ``"chat"`` for Chat Completions, ``"responses"`` for the Responses API.
        logprobs: Whether token log-probabilities are asked for where they come.
        options: What your own requests carry, under the names of ``create``:
            ``temperature``, ``max_tokens``, ``seed``, ``tools``, and so on.
        schedule: ``"concurrent"`` draws samples beside the answer, ``"answer_first"``
            after it. None: after it where there are tools.
        timeout: Seconds for the whole set.
        sample_timeout: Seconds after which what has arrived is returned.
        sample_max_tokens: Token limit of a sample.
        max_concurrency: Requests in flight for this sampler, all calls together.
        max_attempts: Requests sent for one sample before it counts as failed.

    Raises:
        ConfigurationError: If an option makes no sense.

    Example::

        sampler = OpenAISampler(OpenAI(), model="gpt-4.1-mini", n=5)
        responses = sampler.sample("What is the capital of France?")
        [sample.text for sample in responses.samples]
    """

    def __init__(
        self,
        client: openai.OpenAI,
        *,
        model: str,
        n: int = 5,
        include_answer: bool = True,
        temperature: float = 1.0,
        api: ApiName = "chat",
        logprobs: bool = True,
        options: Mapping[str, Any] | None = None,
        schedule: Schedule | None = None,
        timeout: float | None = None,
        sample_timeout: float | None = None,
        sample_max_tokens: int | None = None,
        max_concurrency: int | None = None,
        max_attempts: int = 4,
    ) -> None:
        super().__init__(
            Endpoint.of(
                client, model=model, api=api, options=options, asynchronous=False
            ),
            logprobs=logprobs,
            n=n,
            include_answer=include_answer,
            temperature=temperature,
            schedule=schedule,
            timeout=timeout,
            sample_timeout=sample_timeout,
            sample_max_tokens=sample_max_tokens,
            max_concurrency=max_concurrency,
            max_attempts=max_attempts,
        )

    def sample(self, messages: Messages, /, **options: Any) -> ResponseSet:  # noqa: ANN401 - the API's own
        """Draw the answer and its samples.

        Args:
            messages: A question, or a list of messages as the API takes them.
            **options: Further options of your request, for this call.

        Raises:
            openai.OpenAIError: What the answer itself fails with, unchanged.
            GuardTimeoutError: If it does not come within ``timeout``.
            SamplingError: If the provider gives no answer, and no error.
            InputError: If the messages are none.
            ConfigurationError: If an option is one that the sampler sets itself.
        """
        call = self._call(Call, messages, options)
        return gather(self._gathering(call), call.ask, call.send)


class AsyncOpenAISampler(_Sampler):
    """The twin of ``OpenAISampler`` for ``openai.AsyncOpenAI``.

    Args:
        client: ``openai.AsyncOpenAI``, ``openai.AsyncAzureOpenAI``, or one like them.
        model: Name of the model; at Azure, of the deployment.
        n: Members of the response set, at least 2.
        include_answer: Whether the answer is one of them.
        temperature: Sampling temperature of the samples.
        api: ``"chat"`` or ``"responses"``.
        logprobs: Whether token log-probabilities are asked for where they come.
        options: What your own requests carry.
        schedule: ``"concurrent"``, ``"answer_first"`` or None.
        timeout: Seconds for the whole set.
        sample_timeout: Seconds after which what has arrived is returned.
        sample_max_tokens: Token limit of a sample.
        max_concurrency: Requests in flight for this sampler, all calls together.
        max_attempts: Requests sent for one sample before it counts as failed.

    Raises:
        ConfigurationError: If an option makes no sense.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        *,
        model: str,
        n: int = 5,
        include_answer: bool = True,
        temperature: float = 1.0,
        api: ApiName = "chat",
        logprobs: bool = True,
        options: Mapping[str, Any] | None = None,
        schedule: Schedule | None = None,
        timeout: float | None = None,
        sample_timeout: float | None = None,
        sample_max_tokens: int | None = None,
        max_concurrency: int | None = None,
        max_attempts: int = 4,
    ) -> None:
        super().__init__(
            Endpoint.of(
                client, model=model, api=api, options=options, asynchronous=True
            ),
            logprobs=logprobs,
            n=n,
            include_answer=include_answer,
            temperature=temperature,
            schedule=schedule,
            timeout=timeout,
            sample_timeout=sample_timeout,
            sample_max_tokens=sample_max_tokens,
            max_concurrency=max_concurrency,
            max_attempts=max_attempts,
        )

    async def sample(self, messages: Messages, /, **options: Any) -> ResponseSet:  # noqa: ANN401 - the API's own
        """Draw the answer and its samples without blocking the event loop.

        Args:
            messages: A question, or a list of messages as the API takes them.
            **options: Further options of your request, for this call.

        Raises:
            openai.OpenAIError: What the answer itself fails with, unchanged.
            GuardTimeoutError: If it does not come within ``timeout``.
            SamplingError: If the provider gives no answer, and no error.
            InputError: If the messages are none.
            ConfigurationError: If an option is one that the sampler sets itself.
        """
        call = self._call(AsyncCall, messages, options)
        return await agather(self._gathering(call), call.ask, call.send)
