"""A local Hugging Face model as a LangChain chat model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import ConfigDict

from snne_guard.errors import InputError
from snne_guard.huggingface.model import HuggingFaceModel
from snne_guard.huggingface.settings import Completion, GenerationSettings, Message

_SETTINGS = ("max_tokens", "seed", "stop", "temperature", "top_k", "top_p")
_ROLES = {"system": "system", "human": "user"}
_ROLES |= dict.fromkeys(("ai", "AIMessageChunk"), "assistant")


class TransformersChatModel(BaseChatModel):
    """Any causal language model of Hugging Face, in this process, as a chat model.

    Several replies to one request (``n``) share one prefill, so a guard draws all of
    its samples at once. Requests from several threads or tasks wait for one another.

    Args:
        model: A causal language model of ``transformers``, in evaluation mode, or a
            ``HuggingFaceModel``, which holds its tokenizer. ``from_pretrained`` loads
            one.
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

    Each of the settings, and ``n``, can be given with a call or by ``bind`` as well.
    Messages are text; tools are not supported. A stream is one chunk.

    Raises:
        ConfigurationError: If replies cannot be drawn from the model, or a setting is
            out of range.

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

    def __init__(self, model: Any, tokenizer: Any = None, **fields: Any) -> None:
        if not isinstance(model, HuggingFaceModel):
            model = HuggingFaceModel(model, tokenizer)
        super().__init__(**{"local": model, **fields})
        self._settings({}, None)  # a value out of range is an error now, not later

    @classmethod
    def from_pretrained(
        cls, name: str, *, load: Mapping[str, Any] | None = None, **fields: Any
    ) -> Self:
        """Load a model by its name on the Hugging Face Hub, or from a folder.

        Args:
            name: As for ``HuggingFaceModel.from_pretrained``, which raises its errors.
            load: Options of that, such as ``device_map`` or ``quantization_config``.
            **fields: Settings of this class.
        """
        return cls(HuggingFaceModel.from_pretrained(name, **(load or {})), **fields)

    @property
    def model_name(self) -> str:
        """Name of the model, as in ``response_metadata``."""
        return self.local.name

    @property
    def _llm_type(self) -> str:
        return "snne-guard-transformers"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        # LangChain's cache tells models apart by these.
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
                self._draw, messages, kwargs, stop, cancelled.is_set
            )
        finally:
            cancelled.set()

    def _draw(
        self,
        messages: Sequence[BaseMessage],
        options: Mapping[str, Any],
        stop: list[str] | None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> ChatResult:
        [replies] = self.local.generate(
            [_prompt(messages)],
            n=options.get("n", 1),
            settings=self._settings(options, stop),
            is_over=is_over,
        )
        drawn = [
            AIMessage(reply.text, response_metadata=self._metadata(reply, options))
            for reply in replies
        ]
        # The first message has the usage of all; the prompt is read once for them.
        read = replies[0].prompt_tokens
        written = sum(reply.completion_tokens for reply in replies)
        drawn[0].usage_metadata = UsageMetadata(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        return ChatResult(generations=[ChatGeneration(message=each) for each in drawn])

    def _settings(
        self, options: Mapping[str, Any], stop: list[str] | None
    ) -> GenerationSettings:
        """Return the settings of a call: its own options before the fields."""
        given = {**{name: getattr(self, name) for name in _SETTINGS}, **options}
        texts = (given["stop"] if stop is None else stop) or ()
        given["stop"] = (texts,) if isinstance(texts, str) else tuple(texts)
        for name in ("logprobs", "n", "top_logprobs"):
            given.pop(name, None)
        return GenerationSettings(**given)

    def _metadata(
        self, reply: Completion, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "finish_reason": reply.finish_reason,
            "model_name": self.model_name,
            "model_provider": "huggingface",
        }
        if options.get("logprobs", self.logprobs):
            content: list[dict[str, Any]] = []
            for text, logprob in zip(reply.tokens, reply.token_logprobs, strict=True):
                entry = {"token": text, "bytes": [*text.encode()], "logprob": logprob}
                content.append(entry | {"top_logprobs": []})
            metadata["logprobs"] = {"content": content}
        return metadata


def _prompt(messages: Sequence[BaseMessage]) -> list[Message]:
    """Return messages as chat templates take them."""
    prompt: list[Message] = []
    for message in messages:
        role = _ROLES.get(message.type)
        # What an earlier answer has thought is no part of its text.
        kinds = {block["type"] for block in message.content_blocks} - {"reasoning"}
        if role is None or not kinds <= {"text"}:
            msg = (
                "a local model takes text messages of system, user and assistant, "
                "without tool calls or other content blocks; got a message of "
                f"{message.type}"
            )
            raise InputError(msg)
        prompt.append({"role": role, "content": str(message.text)})
    return prompt
