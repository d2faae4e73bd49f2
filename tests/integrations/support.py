"""A stub of tracing servers, and a chat model that follows a script."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field
from starlette import requests
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from snne_guard import Assessment, Cost, Reply, SNNEGuard
from tests.support.asgi import listening

SECRETS = ("quetzal", "zanzibar", "ytterbium")
"""Question, answer and sample of ``ASSESSMENT``, to search for."""

ASSESSMENT = Assessment(
    id="6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    answer=Reply(
        text="zanzibar", model="test-model", finish_reason="stop", response_id="r-1"
    ),
    samples=(Reply(text="ytterbium", model="test-model"),),
    method="snne",
    score=-0.5,
    uncertainty=0.75,
    threshold=0.4,
    decision="flag",
    n_requested=2,
    n_used=2,
    cost=Cost(calls=2, attempts=2, prompt_tokens=20, completion_tokens=8, seconds=0.5),
    question="quetzal",
)
SUMMARY = (
    "reasons: none; 2 of 2 answers compared by snne; "
    "cost: 2 requests, 20 + 8 tokens, 0.50 s"
)
UNSCORED = replace(
    ASSESSMENT,
    method=None,
    score=None,
    uncertainty=None,
    decision="unscored",
    n_used=1,
    reasons=("tool_calls",),
)


class ScriptedModel(BaseChatModel):
    """Gives its answer, and its samples in turn where a temperature is set.

    The answer is a text, a message, or a function of the messages.
    """

    answer: Any
    samples: tuple[str | AIMessage, ...] = ()
    temperature: float | None = None
    seen: Any = Field(default_factory=list)
    """The messages and options of each draw, shared by all copies of the model."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def drawn(self) -> int:
        return len(self.seen)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        form = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=form, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        before = sum("temperature" in options for _, options in self.seen)
        given = {**kwargs, "stop": stop} if stop else dict(kwargs)
        reply = self.answer
        if self.temperature is not None:
            given["temperature"] = self.temperature
            reply = self.samples[before % len(self.samples)]
        elif callable(reply):
            reply = reply(messages)
        self.seen.append((list(messages), given))
        message = AIMessage(reply) if isinstance(reply, str) else reply
        message = message.model_copy(
            update={"response_metadata": {"finish_reason": "stop"}}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def guarded(observer: Any, **options: Any) -> SNNEGuard:
    """Return a guard whose answer, "zanzibar", and sample, "ytterbium", differ."""
    model = ScriptedModel(answer="zanzibar", samples=("ytterbium",))
    settings = {"n": 2, "method": "snne", "threshold": 0.4, **options}
    return SNNEGuard(model, observers=[observer], **settings)


def chained(observer: Any) -> Runnable[Any, Any]:
    """Return a chain that ends in such a guard."""
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])
    return prompt | guarded(observer)


def ask(model: Any, way: str, config: Any = None) -> None:
    """Ask a runnable the secret question, as a whole or streamed."""

    async def astream() -> None:
        async for _ in model.astream("quetzal", config):
            pass

    if way == "invoke":
        model.invoke("quetzal", config)
    elif way == "stream":
        list(model.stream("quetzal", config))
    elif way == "ainvoke":
        asyncio.run(model.ainvoke("quetzal", config))
    else:
        asyncio.run(astream())


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request that a stub has received, its body decompressed."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class StubServer:
    """Keeps every request, and answers JSON by how the path ends.

    A reply is a JSON value, or a function from the ``Request`` to one.
    """

    def __init__(self, replies: Mapping[str, Any] | None = None) -> None:
        self.replies = dict(replies or {})
        self.requests: list[Request] = []
        methods = ["GET", "PATCH", "POST", "PUT"]
        routes = [Route("/{path:path}", self._answer, methods=methods)]
        self._listening = listening(Starlette(routes=routes))

    def bodies(self, path: str) -> list[bytes]:
        return [each.body for each in self.requests if each.path == path]

    def everything(self) -> str:
        """Return all bodies as one text to search in."""
        return "\n".join(each.body.decode("utf-8", "replace") for each in self.requests)

    async def _answer(self, given: requests.Request) -> JSONResponse:
        body, headers = await given.body(), dict(given.headers)
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = Request(path=given.url.path, headers=headers, body=body)
        self.requests.append(request)
        found = (key for key in self.replies if request.path.endswith(key))
        reply = self.replies.get(next(found, ""), {})
        return JSONResponse(reply(request) if callable(reply) else reply)

    def __enter__(self) -> Self:
        self.url = f"http://127.0.0.1:{self._listening.__enter__()}"
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.__exit__(None, None, None)
