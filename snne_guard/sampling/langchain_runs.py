"""LangChain's callback runs for requests that are not made through its callbacks.

Handlers may see a reply only after the decision, and never one that is withheld. So
the requests themselves are quiet, and what handlers are told of them is told here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    CallbackManager,
    CallbackManagerForLLMRun,
    Callbacks,
)
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig, ensure_config

from snne_guard.errors import SamplingError
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_quiet import silent

__all__ = [
    "ANSWER_TAG",
    "NOSTREAM_TAG",
    "SAMPLE_TAG",
    "AsyncRunLog",
    "RunLog",
    "run_id_of",
    "said_in",
]

ANSWER_TAG = "snne_guard:answer"
"""Tag of the run in which a guard's answer is drawn."""
SAMPLE_TAG = "snne_guard:sample"
"""Tag of the runs in which samples of it are drawn."""
NOSTREAM_TAG = "nostream"
"""LangGraph's word for runs that stay out of ``stream_mode="messages"``."""
_QUESTION = "snne_guard_question"


def run_id_of(config: RunnableConfig) -> str | None:
    """Return the run whose children a configuration's callbacks tell of."""
    run_id = getattr(config.get("callbacks"), "parent_run_id", None)
    return None if run_id is None else str(run_id)


def said_in(config: RunnableConfig | None) -> object:
    """Return what a call's metadata say that the question is, None if nothing.

    Metadata reach every step of a chain, and calls in a step that are given none.
    """
    return ensure_config(config).get("metadata", {}).get(_QUESTION)


@dataclass(slots=True, kw_only=True)
class _Plan:
    """What both twins share: for whom, with which tags, and what may be shown.

    Attributes:
        config: Configuration of the guarded call, its callbacks those of a child.
        hold: Whether replies are kept back until the decision.
        usage: Whether the runs carry token usage; not where an outer run counts it.
        texts: Whether handlers may see the texts of samples at all.
        told: Whether handlers are told anything.
        withheld: What was decided about the answer, None before that.
    """

    config: RunnableConfig
    hold: bool = False
    usage: bool = True
    texts: bool = True
    told: bool = True
    withheld: bool | None = None
    held: deque[tuple[Any, LLMResult]] = field(
        default_factory=deque[tuple[Any, LLMResult]]
    )

    def configure(self, candidate: Candidate) -> dict[str, Any]:
        model = candidate.model
        tags = [*(self.config.get("tags") or ()), *(candidate.config.get("tags") or ())]
        return {
            "inheritable_callbacks": self.config.get("callbacks"),
            "local_callbacks": [
                *_handlers(model.callbacks),
                *_handlers(candidate.config.get("callbacks")),
            ],
            "inheritable_tags": tags,
            "local_tags": model.tags,
            "inheritable_metadata": {
                **(self.config.get("metadata") or {}),
                **(candidate.config.get("metadata") or {}),
            },
            "local_metadata": model.metadata,
        }

    @staticmethod
    def start(candidate: Candidate, options: Mapping[str, Any]) -> dict[str, Any]:
        name = type(candidate.model).__name__
        kind = type(candidate.model)
        return {
            "serialized": {
                "lc": 1,
                "type": "not_implemented",
                "id": [*kind.__module__.split("."), name],
                "name": name,
            },
            "invocation_params": {"_type": candidate.model._llm_type, **options},  # noqa: SLF001 - LangChain's own contract for tracers  # pyright: ignore[reportPrivateUsage]
            "options": dict(options),
            "name": name,
            "batch_size": 1,
        }

    def shown(self, result: LLMResult, *, withheld: bool = False) -> LLMResult:
        """Return the result as handlers may see it."""
        output = dict(result.llm_output or {})
        model_name = output.get("model_name") or output.get("model")
        generations = [
            _shown(
                generation,
                model_name=model_name,
                usage=self.usage and index == 0,
                withheld=withheld or not self.texts,
            )
            for index, generation in enumerate(result.generations[0])
            if isinstance(generation, ChatGeneration)
        ]
        return LLMResult(generations=[[*generations]])

    def decided(self) -> Iterator[tuple[Any, LLMResult]]:
        """Yield what was held back, each to one thread only."""
        while True:
            try:
                yield self.held.popleft()
            except IndexError:
                return

    def error(self, error: BaseException) -> BaseException:
        """Return the error as handlers may see it: it may quote what was drawn."""
        if not self.hold:
            return error
        return SamplingError(f"{type(error).__name__} while drawing")


def _shown(
    generation: ChatGeneration, *, model_name: str | None, usage: bool, withheld: bool
) -> ChatGeneration:
    message = generation.message
    metadata = dict(message.response_metadata)
    name = metadata.get("model_name") or model_name
    counted = message.usage_metadata if isinstance(message, AIMessage) else None
    update: dict[str, Any] = {"usage_metadata": counted if usage else None}
    if withheld:
        kept = {"model_name": name} if name else {}
        blank = AIMessage(content="", response_metadata=kept, **update)
        return ChatGeneration(message=blank)
    if name:
        metadata["model_name"] = name
    metadata.pop("token_usage", None)
    update["response_metadata"] = metadata
    return ChatGeneration(
        message=message.model_copy(update=update),
        generation_info=generation.generation_info,
    )


def _handlers(callbacks: Callbacks) -> list[BaseCallbackHandler]:
    if isinstance(callbacks, BaseCallbackManager):
        return callbacks.handlers
    return callbacks or []


Manager = TypeVar("Manager", CallbackManager, AsyncCallbackManager)


def _described(manager: Manager, candidate: Candidate, *, told: bool) -> Manager:
    """Add what tracers are told of the model, where anybody listens."""
    if not told:
        manager.set_handlers([])
    if manager.handlers:
        params = candidate.model._get_ls_params(**candidate.kwargs)  # noqa: SLF001 - LangChain's own contract for tracers  # pyright: ignore[reportPrivateUsage]
        manager.add_metadata(dict(params), inherit=False)
    return manager


def _tagged(manager: Manager, tag: str) -> Manager:
    tagged: Manager = manager.copy()
    tagged.add_tags([tag, NOSTREAM_TAG], inherit=False)
    return tagged


Run = TypeVar("Run", CallbackManagerForLLMRun, AsyncCallbackManagerForLLMRun)


def _unheard(run: Run, manager: BaseCallbackManager, tags: Sequence[str]) -> Run:
    """Say whose a run is; a model may pass all of it on to a model behind it."""
    run.parent_run_id = manager.parent_run_id
    run.handlers = silent()
    run.inheritable_handlers = [*run.handlers]
    run.tags = [*manager.tags, *tags]
    run.inheritable_tags = [*manager.inheritable_tags, *tags]
    run.metadata = {**manager.metadata}
    run.inheritable_metadata = {**manager.inheritable_metadata}
    return run


class RunLog(_Plan):
    """Opens a run for each request and closes it when its reply may be seen."""

    def manager(self, candidate: Candidate) -> CallbackManager:
        """Return the manager of one candidate's runs; call it in the user's context."""
        manager = CallbackManager.configure(**self.configure(candidate))
        return _described(manager, candidate, told=self.told)

    def unheard(self, manager: CallbackManager, *tags: str) -> CallbackManagerForLLMRun:
        """Return a run to give to the model where no handler is to hear of it."""
        return _unheard(CallbackManagerForLLMRun.get_noop_manager(), manager, tags)

    def open(
        self,
        manager: CallbackManager,
        tag: str,
        candidate: Candidate,
        messages: Sequence[BaseMessage],
        options: Mapping[str, Any],
    ) -> CallbackManagerForLLMRun | None:
        """Tell that a request goes out; None where nobody listens."""
        if not manager.handlers:
            return None
        start = self.start(candidate, options)
        return _tagged(manager, tag).on_chat_model_start(
            messages=[list(messages)], **start
        )[0]

    def close(self, run: CallbackManagerForLLMRun | None, result: LLMResult) -> None:
        """Tell what came back, now or after the decision."""
        if run is None:
            return
        if not self.hold:
            run.on_llm_end(self.shown(result))
            return
        # First kept, then looked: the decision may fall between the two.
        self.held.append((run, result))
        if self.withheld is not None:
            self.release(withheld=self.withheld)

    def fail(self, run: CallbackManagerForLLMRun | None, error: BaseException) -> None:
        """Tell that nothing came back."""
        if run is not None:
            run.on_llm_error(self.error(error))

    def release(self, *, withheld: bool) -> None:
        """Close what was held back, without the text where the answer is withheld."""
        if self.withheld is None:
            self.withheld = withheld
        for run, result in self.decided():
            run.on_llm_end(self.shown(result, withheld=self.withheld))


class AsyncRunLog(_Plan):
    """The twin of ``RunLog`` for tasks."""

    def manager(self, candidate: Candidate) -> AsyncCallbackManager:
        """Return the manager of one candidate's runs; call it in the user's context."""
        manager = AsyncCallbackManager.configure(**self.configure(candidate))
        return _described(manager, candidate, told=self.told)

    def unheard(
        self, manager: AsyncCallbackManager, *tags: str
    ) -> AsyncCallbackManagerForLLMRun:
        """Return a run to give to the model where no handler is to hear of it."""
        return _unheard(AsyncCallbackManagerForLLMRun.get_noop_manager(), manager, tags)

    async def open(
        self,
        manager: AsyncCallbackManager,
        tag: str,
        candidate: Candidate,
        messages: Sequence[BaseMessage],
        options: Mapping[str, Any],
    ) -> AsyncCallbackManagerForLLMRun | None:
        """Tell that a request goes out; None where nobody listens."""
        if not manager.handlers:
            return None
        start = self.start(candidate, options)
        started = await _tagged(manager, tag).on_chat_model_start(
            messages=[list(messages)], **start
        )
        return started[0]

    async def close(
        self, run: AsyncCallbackManagerForLLMRun | None, result: LLMResult
    ) -> None:
        """Tell what came back, now or after the decision."""
        if run is None:
            return
        if not self.hold:
            await run.on_llm_end(self.shown(result))
            return
        # First kept, then looked: the decision may fall between the two.
        self.held.append((run, result))
        if self.withheld is not None:
            await self.release(withheld=self.withheld)

    async def fail(
        self, run: AsyncCallbackManagerForLLMRun | None, error: BaseException
    ) -> None:
        """Tell that nothing came back."""
        if run is not None:
            await run.on_llm_error(self.error(error))

    async def release(self, *, withheld: bool) -> None:
        """Close what was held back, without the text where the answer is withheld."""
        if self.withheld is None:
            self.withheld = withheld
        for run, result in self.decided():
            await run.on_llm_end(self.shown(result, withheld=self.withheld))
