"""A local Hugging Face model as a LangChain chat model."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, ClassVar, Self, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_config_list
from pydantic import ConfigDict, Field

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.hf_load import settings_held
from snne_guard.sampling.hf_settings import Completion, GenerationSettings, Token
from snne_guard.sampling.huggingface import HuggingFaceModel
from snne_guard.sampling.langchain_hf_messages import (
    last_chunk,
    text_chunk,
    to_prompt,
    to_result,
)
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import TRANSFORMERS

__all__ = ["PipelineSamples", "TransformersChatModel"]

_OPTIONS = frozenset(
    {
        "logprobs",
        "max_tokens",
        "n",
        "seed",
        "stop",
        "temperature",
        "top_k",
        "top_p",
    }
)
"""What a call may set; each is a field too."""


class TransformersChatModel(BaseChatModel):
    """Any causal language model of Hugging Face, in this process, as a chat model.

    Several replies to one request (``n``) share one prefill, and calls that run at the
    same time, in threads or tasks, share a batch: so ``SNNEGuard`` draws its samples in
    one go, and ``batch`` is many times as fast as one call after another.

    Args:
        model: A ``HuggingFaceModel``, or what holds a loaded model: a text-generation
            pipeline of ``transformers``, a ``HuggingFacePipeline``, a
            ``ChatHuggingFace`` on one. ``from_pretrained`` loads one.
        temperature: Divides the logits; 0 takes the likeliest token each time. None
            draws as the model's authors recommend: with temperature, top-k and top-p of
            its ``generation_config``, or without sampling where that says so.
        top_k: Draw among so many of the likeliest tokens.
        top_p: Draw among the likeliest tokens with at least this probability together.
        max_tokens: Tokens that a reply may have.
        stop: Texts at which a reply ends; they are not part of it.
        seed: Fixes what is drawn.
        n: Replies to one request; ``generate`` returns them all, ``invoke`` the first.
        logprobs: Whether ``response_metadata["logprobs"]["content"]`` holds the
            log-probability of each token, under the model's own distribution, in the
            form of ``ChatOpenAI``; ``sampling_logprob`` beside it is that under the
            distribution it was drawn from.
        streaming: Whether ``invoke`` streams, for callbacks that listen to tokens.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        ConfigurationError: If there is no local model in ``model``, or a setting makes
            no sense.

    Example:
        >>> model = TransformersChatModel.from_pretrained(  # doctest: +SKIP
        ...     "meta-llama/Llama-3.1-8B-Instruct", temperature=0.2
        ... )
        >>> guard = SNNEGuard(model, n=10, threshold=0.4)  # doctest: +SKIP
        >>> guard.invoke("Who wrote Faust?")  # doctest: +SKIP
        AIMessage(content='Johann Wolfgang von Goethe wrote Faust.', ...)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    snne_guard_provider: ClassVar[Provider] = TRANSFORMERS

    model: HuggingFaceModel
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_tokens: int = 256
    stop: list[str] | None = None
    seed: int | None = None
    n: int = Field(default=1, ge=1)
    logprobs: bool | None = None
    streaming: bool = False

    def __init__(self, model: object, **options: Any) -> None:  # noqa: ANN401 - the fields above
        fields: dict[str, Any] = {"model": HuggingFaceModel.of(model), **options}
        super().__init__(**fields)
        self._settings({}, None)  # so that a value that makes no sense is told now

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        *,
        device: str | None = None,
        dtype: Any = None,  # noqa: ANN401 - a torch.dtype or its name
        trust_remote_code: bool = False,
        load: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - the fields above
    ) -> Self:
        """Load a model from the Hugging Face Hub or from a folder.

        Args:
            name: Such as ``"meta-llama/Llama-3.1-8B-Instruct"``, or a path.
            device: Such as ``"cuda:1"``; a GPU if there is one unless given.
            dtype: A ``torch.dtype``, its name, or ``"auto"``. bfloat16 on a GPU and
                float32 on a CPU unless given.
            trust_remote_code: Whether code that comes with the model may run here.
            load: Further options of ``HuggingFaceModel.from_pretrained``, such as
                ``device_map``, ``quantization_config`` or ``revision``.
            **options: The fields of this class.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If a setting makes no sense.
            OSError: If there is no such model, from ``transformers``.
        """
        loaded = HuggingFaceModel.from_pretrained(
            name,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            **(load or {}),
        )
        return cls(loaded, **options)

    @classmethod
    def of(cls, held: object, **options: Any) -> Self:  # noqa: ANN401 - the fields above
        """Return a chat model on weights that are loaded already, and its settings.

        The token limit and stop texts of the pipeline hold here too, and the settings
        that it samples with.

        Args:
            held: A text-generation pipeline of ``transformers``, a
                ``HuggingFacePipeline`` on one, or a ``ChatHuggingFace`` on that.
            **options: The fields of this class, in place of what was found.

        Raises:
            ConfigurationError: If there is no local model in it.
        """
        loaded = HuggingFaceModel.of(held)
        return cls(loaded, **{**settings_held(held), **options})

    @property
    def _llm_type(self) -> str:
        return "snne-guard-transformers"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in sorted(_OPTIONS)}
        return {"model_name": self.model.name, **own}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: weights are not written into a chain's JSON."""
        return False

    def _get_ls_params(
        self,
        stop: list[str] | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> LangSmithParams:
        params = LangSmithParams(
            ls_provider="huggingface",
            ls_model_name=str(kwargs.get("model", self.model.name)),
            ls_model_type="chat",
            ls_max_tokens=kwargs.get("max_tokens", self.max_tokens),
        )
        temperature = kwargs.get("temperature", self.temperature)
        if temperature is not None:
            params["ls_temperature"] = temperature
        if ends := stop or self.stop:
            params["ls_stop"] = ends
        return params

    def get_token_ids(self, text: str) -> list[int]:
        """Return the tokens of a text, so that ``get_num_tokens`` is the model's."""
        ids: list[int] = self.model.tokenizer(text)["input_ids"]
        return ids

    def batch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> list[AIMessage]:
        """Reply to many inputs, all of them together unless ``max_concurrency`` is set.

        LangChain would ask with a few threads more than there are processors. Here
        threads only wait, and who does not wait is not in the batch.
        """
        if inputs:
            most = {"max_concurrency": len(inputs)}
            config = [
                cast("RunnableConfig", {**most, **_set(each)})
                for each in get_config_list(config, len(inputs))
            ]
        return super().batch(
            inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        settings = self._settings(kwargs, stop)
        n = self._n(kwargs)
        future = self.model.submit(to_prompt(messages), n=n, settings=settings)
        try:
            return self._result(future.result(), kwargs)
        finally:
            future.cancel()

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        settings = self._settings(kwargs, stop)
        future = await self.model.asubmit(
            to_prompt(messages), n=self._n(kwargs), settings=settings
        )
        waiting: asyncio.Future[tuple[Completion, ...]] = asyncio.wrap_future(future)
        try:
            return self._result(await waiting, kwargs)
        finally:
            future.cancel()

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Iterator[ChatGenerationChunk]:
        settings = self._settings(kwargs, stop)
        arrived: SimpleQueue[Sequence[Token] | None] = SimpleQueue()
        future = self.model.submit(
            to_prompt(messages), settings=settings, listener=arrived.put
        )
        future.add_done_callback(lambda _done: arrived.put(None))
        try:
            while (tokens := arrived.get()) is not None:
                chunk = text_chunk(tokens, logprobs=self._logprobs(kwargs))
                if run_manager is not None:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk
            yield self._last(future)
        finally:
            future.cancel()

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        settings = self._settings(kwargs, stop)
        arrived: asyncio.Queue[Sequence[Token] | None] = asyncio.Queue()
        tell = _from_other_threads(arrived)
        future = await self.model.asubmit(
            to_prompt(messages), settings=settings, listener=tell
        )
        future.add_done_callback(lambda _done: _end(tell))
        try:
            while (tokens := await arrived.get()) is not None:
                chunk = text_chunk(tokens, logprobs=self._logprobs(kwargs))
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk
            yield self._last(future)
        finally:
            future.cancel()

    def _last(self, future: Future[tuple[Completion, ...]]) -> ChatGenerationChunk:
        (reply,) = future.result()
        return last_chunk(reply, name=self.model.name)

    def _result(
        self, replies: Sequence[Completion], kwargs: Mapping[str, Any]
    ) -> ChatResult:
        logprobs = self._logprobs(kwargs)
        return to_result(replies, name=self.model.name, logprobs=logprobs)

    def _n(self, kwargs: Mapping[str, Any]) -> int:
        n = kwargs.get("n")
        return self.n if n is None else n

    def _logprobs(self, kwargs: Mapping[str, Any]) -> bool:
        return bool(kwargs.get("logprobs", self.logprobs))

    def _settings(
        self, kwargs: Mapping[str, Any], stop: list[str] | None
    ) -> GenerationSettings:
        """Return the settings of a call: its own options before the fields."""
        if unknown := kwargs.keys() - _OPTIONS:
            msg = (
                f"a call may set {', '.join(sorted(_OPTIONS))}; got "
                f"{', '.join(sorted(unknown))}"
            )
            raise ConfigurationError(msg)
        given = {name: kwargs.get(name, getattr(self, name)) for name in _OPTIONS}
        ends = given["stop"] if stop is None else stop
        start = GenerationSettings()
        if given["temperature"] is None:
            start = self.model.defaults
        names = ("max_tokens", "seed", "temperature", "top_k", "top_p")
        known = {name: given[name] for name in names if given[name] is not None}
        return replace(start, stop=tuple(ends or ()), **known)


class PipelineSamples(TransformersChatModel):
    """Draws the samples for a class whose own options say nothing to it."""

    def _settings(
        self, kwargs: Mapping[str, Any], stop: list[str] | None
    ) -> GenerationSettings:
        known = {name: kwargs[name] for name in _OPTIONS & kwargs.keys()}
        return super()._settings(known, stop)


def _set(config: RunnableConfig) -> dict[str, Any]:
    return {name: value for name, value in config.items() if value is not None}


def _from_other_threads(arrived: asyncio.Queue[Any]) -> Callable[[Any], None]:
    """Return what puts things into the queue of this event loop, from any thread."""
    loop = asyncio.get_running_loop()

    def tell(tokens: Any) -> None:  # noqa: ANN401 - tokens, or None at the end
        # Of a loop that is closed it raises, which ends the request.
        loop.call_soon_threadsafe(arrived.put_nowait, tokens)

    return tell


def _end(tell: Callable[[None], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
        tell(None)
