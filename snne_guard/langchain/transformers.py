"""A local Hugging Face model as a LangChain chat model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface import (
    Completion,
    GenerationSettings,
    HuggingFaceModel,
    Message,
)

__all__ = ["TransformersChatModel"]

_SETTINGS = ("max_tokens", "seed", "stop", "temperature", "top_k", "top_p")
_CALL_OPTIONS = frozenset({*_SETTINGS, "logprobs", "n"})
_ROLES: dict[type[BaseMessage], str] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    SystemMessage: "system",
}
_READABLE = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})
"""Types of content blocks that are text, or are left out."""


class TransformersChatModel(BaseChatModel):
    """Any causal language model of Hugging Face, in this process, as a chat model.

    Several replies to one request (``n``) share one prefill, so a guard draws all of
    its samples at once. Requests from several threads or tasks wait for one another;
    ``generate_batch`` draws for many conversations together.

    Args:
        model: A causal language model of ``transformers``, in evaluation mode, or a
            ``HuggingFaceModel``, which holds its tokenizer. ``from_pretrained`` loads
            one, ``from_pipeline`` takes one that is loaded.
        tokenizer: Its tokenizer.
        temperature: Divides the logits; 0 takes the likeliest token each time. None
            draws as the model's ``generation_config`` says: with its temperature,
            top-k, top-p and penalties, or greedily. A temperature of your own, as
            samples of a guard have, puts all of these aside.
        top_k: Draw among this many of the likeliest tokens.
        top_p: Draw among the likeliest tokens that together have this probability.
        max_tokens: Most tokens of a reply.
        stop: Texts at which a reply ends; they are not part of it.
        seed: Makes replies repeatable.
        logprobs: Whether ``response_metadata["logprobs"]["content"]`` has the
            log-probability of each token, before temperature, top-k and top-p, in
            the form of ``ChatOpenAI``.
        streaming: Whether ``invoke`` streams, for handlers that listen to tokens.

    Each of the settings, and ``n``, can be given with a call or by ``bind`` as well.
    Messages are text; tools are not supported.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        ConfigurationError: If replies cannot be drawn from the model, or a setting
            makes no sense.

    Example:
        >>> model = TransformersChatModel.from_pretrained(  # doctest: +SKIP
        ...     "meta-llama/Llama-3.1-8B-Instruct", temperature=0.2
        ... )
        >>> model.invoke("Who wrote Faust?")  # doctest: +SKIP
        AIMessage(content='Johann Wolfgang von Goethe wrote Faust.', ...)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    local: HuggingFaceModel
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_tokens: int = 256
    stop: list[str] | None = None
    seed: int | None = None
    logprobs: bool = False
    streaming: bool = False

    def __init__(self, model: Any, tokenizer: Any = None, **fields: Any) -> None:
        if not isinstance(model, HuggingFaceModel):
            model = HuggingFaceModel(model, tokenizer)
        super().__init__(**{"local": model, **fields})
        self._settings({}, None)  # so that a value that makes no sense is told now

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        *,
        device: str | None = None,
        dtype: Any = None,
        trust_remote_code: bool = False,
        load: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Load a model from the Hugging Face Hub or from a folder.

        Args:
            name: Such as ``"meta-llama/Llama-3.1-8B-Instruct"``, or a path.
            device: Such as ``"cuda:1"``; a GPU if there is one unless given.
            dtype: A ``torch.dtype``, its name, or ``"auto"``. bfloat16 on a GPU and
                float32 on a CPU unless given.
            trust_remote_code: Whether code that comes with the model may run here.
            load: Further options of ``HuggingFaceModel.from_pretrained``, such as
                ``chat_template``, ``device_map`` or ``quantization_config``.
            **fields: Settings of this class.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If a setting makes no sense.
            OSError: If there is no such model, from ``transformers``.
        """
        local = HuggingFaceModel.from_pretrained(
            name,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            **(load or {}),
        )
        return cls(local, **fields)

    @classmethod
    def from_pipeline(cls, pipeline: object, **fields: Any) -> Self:
        """Take the model out of a pipeline; nothing is loaded again.

        Args:
            pipeline: A text-generation pipeline of ``transformers``, a
                ``HuggingFacePipeline`` around one, or a ``ChatHuggingFace`` around
                that. Its model and tokenizer are used, its settings are not: name
                those that matter, such as ``max_tokens`` and ``temperature``.
            **fields: Settings of this class.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If there is no local model in it.
        """
        return cls(HuggingFaceModel.from_pipeline(pipeline), **fields)

    @property
    def model_name(self) -> str:
        """Name of the model, as in ``response_metadata``."""
        return self.local.name

    @property
    def _llm_type(self) -> str:
        return "snne-guard-transformers"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _SETTINGS}
        return {"model_name": self.model_name, **own}

    def get_token_ids(self, text: str) -> list[int]:
        """Return the tokens of a text, so that ``get_num_tokens`` is the model's."""
        ids: list[int] = self.local.tokenizer(text)["input_ids"]
        return ids

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,
    ) -> ChatResult:
        return self._draw(messages, kwargs, stop)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,
    ) -> ChatResult:
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(
                self._draw, messages, kwargs, stop, cancelled
            )
        finally:
            cancelled.set()

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        settings, logprobs = self._settings(kwargs, stop), self._logprobs(kwargs)
        if kwargs.get("n") not in (None, 1):
            msg = f"a stream is one reply; got n={kwargs['n']!r}"
            raise ConfigurationError(msg)
        for part in self.local.stream(_prompt(messages), settings=settings):
            if isinstance(part, Completion):
                chunk = _last_chunk(part, self.model_name, logprobs=logprobs)
            else:
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=part))
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _draw(
        self,
        messages: Sequence[BaseMessage],
        options: Mapping[str, Any],
        stop: list[str] | None,
        cancelled: threading.Event | None = None,
    ) -> ChatResult:
        n = options.get("n")
        (replies,) = self.local.generate(
            [_prompt(messages)],
            n=1 if n is None else n,
            settings=self._settings(options, stop),
            cancelled=cancelled,
        )
        return _result(replies, self.model_name, logprobs=self._logprobs(options))

    def _logprobs(self, options: Mapping[str, Any]) -> bool:
        return bool(options.get("logprobs", self.logprobs))

    def _settings(
        self, options: Mapping[str, Any], stop: list[str] | None
    ) -> GenerationSettings:
        """Return the settings of a call: its own options before the fields."""
        if unknown := options.keys() - _CALL_OPTIONS:
            msg = (
                f"a call may set {', '.join(sorted(_CALL_OPTIONS))}; got "
                f"{', '.join(sorted(unknown))}"
            )
            raise ConfigurationError(msg)
        given = {name: options.get(name, getattr(self, name)) for name in _SETTINGS}
        ends = given["stop"] if stop is None else stop
        return GenerationSettings(**{**given, "stop": tuple(ends or ())})

    def _get_ls_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **kwargs)
        params["ls_provider"] = "huggingface"
        return params


def _prompt(messages: Sequence[BaseMessage]) -> list[Message]:
    """Return messages as chat templates take them."""
    return [{"role": _role(message), "content": _text(message)} for message in messages]


def _role(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return message.role
    for kind, role in _ROLES.items():
        if isinstance(message, kind):
            return role
    msg = (
        "a local model takes messages of system, user and assistant; got a "
        f"{type(message).__name__}"
    )
    raise InputError(msg)


def _text(message: BaseMessage) -> str:
    if isinstance(message, AIMessage) and message.tool_calls:
        msg = "a local model takes no tools; got an AIMessage that calls some"
        raise InputError(msg)
    if isinstance(message.content, list):
        kinds = [
            block.get("type") for block in message.content if isinstance(block, dict)
        ]
        if unread := set(kinds) - _READABLE:
            found = ", ".join(sorted(map(str, unread)))
            msg = (
                "a local model takes text; got a content block of type "
                f"{found} in a {type(message).__name__}"
            )
            raise InputError(msg)
    return str(message.text)


def _result(replies: Sequence[Completion], name: str, *, logprobs: bool) -> ChatResult:
    """Return the replies to one conversation; the first has the usage of all."""
    usage = _usage(replies)
    generations = [
        ChatGeneration(
            message=AIMessage(
                content=reply.text,
                usage_metadata=None if place else usage,
                response_metadata=_metadata(reply, name, logprobs=logprobs),
            ),
            generation_info={"finish_reason": reply.finish_reason},
        )
        for place, reply in enumerate(replies)
    ]
    return ChatResult(generations=[*generations], llm_output={"model_name": name})


def _last_chunk(reply: Completion, name: str, *, logprobs: bool) -> ChatGenerationChunk:
    """Return the end of a streamed reply: why it ended, and what it took."""
    message = AIMessageChunk(
        content="",
        usage_metadata=_usage([reply]),
        response_metadata=_metadata(reply, name, logprobs=logprobs),
        chunk_position="last",
    )
    return ChatGenerationChunk(
        message=message, generation_info={"finish_reason": reply.finish_reason}
    )


def _metadata(reply: Completion, name: str, *, logprobs: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "finish_reason": reply.finish_reason,
        "model_name": name,
        "model_provider": "huggingface",
    }
    if logprobs:
        content = [
            {
                "token": token.text,
                "bytes": list(token.text.encode()),
                "logprob": token.logprob,
                "top_logprobs": list[Any](),
            }
            for token in reply.tokens
        ]
        metadata["logprobs"] = {"content": content}
    return metadata


def _usage(replies: Sequence[Completion]) -> UsageMetadata:
    # The prompt is read once for all of them.
    read = replies[0].prompt_tokens
    written = sum(reply.completion_tokens for reply in replies)
    return UsageMetadata(
        input_tokens=read, output_tokens=written, total_tokens=read + written
    )
