"""A scripted chat model that remembers how its hooks were called."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field

from snne_guard.sampling.langchain import LangChainSender
from snne_guard.sampling.replies import Draw, Reply

ANSWER = Draw(role="answer")
SAMPLE = Draw(role="sample")
LOGPROBS = {"content": [{"token": "Paris", "logprob": -0.5}]}


def tokens(*pairs: tuple[str, float]) -> list[dict[str, Any]]:
    """Return tokens with their log-probabilities, as OpenAI lists them."""
    return [{"token": token, "logprob": logprob} for token, logprob in pairs]


class RejectedError(Exception):
    """A provider's HTTP 400."""

    status_code = 400


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a hook: the options, and the fields of the copy that got them."""

    hook: str
    messages: Sequence[BaseMessage]
    stop: list[str] | None
    options: dict[str, Any]
    temperature: float | None
    model: Any = field(repr=False)


class Scripted(BaseChatModel):
    """Repeats one text for each reply that is asked for, or follows its script.

    Copies share the list of calls.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model_name: str = "scripted"
    text: str = "Paris"
    script: Callable[[Call], Any] | None = None
    temperature: float | None = 0.2
    n: int = 1
    seed: int | None = None
    streaming: bool = False
    extra_body: dict[str, Any] | None = None
    calls: list[Call] = Field(default_factory=list)
    threads: set[int] = Field(default_factory=set)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _note(self, hook: str, messages: Any, stop: Any, options: Any) -> Call:
        call = Call(
            hook=hook,
            messages=messages,
            stop=stop,
            options=options,
            temperature=self.temperature,
            model=self,
        )
        self.calls.append(call)
        self.threads.add(threading.get_ident())
        return call

    def _result(self, call: Call) -> ChatResult:
        scripted = self.script(call) if self.script else self.text
        if isinstance(scripted, BaseException):
            raise scripted
        if isinstance(scripted, ChatResult):
            return scripted
        texts = scripted
        if isinstance(scripted, str):
            texts = [scripted] * call.options.get("n", 1)
        usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
        info: dict[str, Any] = {"finish_reason": "stop"}
        if call.options.get("logprobs"):
            info |= {"logprobs": LOGPROBS}
        return ChatResult(
            generations=[
                ChatGeneration(
                    message=AIMessage(text, usage_metadata=usage),
                    generation_info=info,
                )
                for text in texts
            ],
            llm_output={"model_name": "scripted-1"},
        )

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        del run_manager
        return self._result(self._note("_generate", messages, stop, options))


class ScriptedAsync(Scripted):
    """The same with a hook for tasks."""

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        del run_manager
        return self._result(self._note("_agenerate", messages, stop, options))


class ScriptedStream(ScriptedAsync):
    """The same with streams: one chunk a character, the ending on the last one."""

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        del run_manager
        yield from self._chunks(self._note("_stream", messages, stop, options))

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        del run_manager
        for chunk in self._chunks(self._note("_astream", messages, stop, options)):
            yield chunk

    def _chunks(self, call: Call) -> Iterator[ChatGenerationChunk]:
        generation = self._result(call).generations[0]
        info = generation.generation_info or {}
        for character in str(generation.message.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=character))
        if "logprobs" in info:
            logprobs = {"logprobs": info["logprobs"]}
            last = AIMessageChunk(content="")
            yield ChatGenerationChunk(message=last, generation_info=logprobs)
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", response_metadata={"model_name": "s"}),
            generation_info={"finish_reason": "stop"},
        )


async def sent(draws: LangChainSender, draw: Draw, way: str) -> Reply:
    """Send a draw in a thread's or in a task's way."""
    return draws.send(draw) if way == "send" else await draws.asend(draw)


async def streamed(draws: LangChainSender, way: str) -> list[ChatGenerationChunk]:
    """Return all chunks of the answer."""
    if way == "send":
        return list(draws.stream())
    return [chunk async for chunk in draws.astream()]
