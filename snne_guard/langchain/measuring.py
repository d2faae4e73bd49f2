"""What a guard does without delivering anything: assessments, and its preflight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from snne_guard.assess.preflight import Preflight
from snne_guard.errors import InputError
from snne_guard.langchain.acall import AsyncGuardedCall
from snne_guard.langchain.call import GuardedCall
from snne_guard.langchain.core import Request
from snne_guard.langchain.options import GuardOptions
from snne_guard.langchain.preflight import apreflight, preflight
from snne_guard.types import Assessment

__all__ = ["Measuring"]


class Measuring(GuardOptions):
    """The half of ``SNNEGuard`` that looks and delivers nothing."""

    def assess(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        answer: AIMessage | str | None = None,
        run_id: UUID | str | None = None,
        **kwargs: Any,
    ) -> Assessment:
        """Draw, score and decide; return everything and deliver nothing.

        Args:
            input: What the model takes.
            config: LangChain's configuration.
            answer: The reply to assess, where there is one already: then only samples
                are drawn, and only they are in the cost. None draws one anew. For
                WSNNE it must be a message that carries its log-probabilities.
            run_id: The LangChain run that gave the answer, where that is over. The
                assessment names it, and callback handlers are told of no sample: it
                would be a run of its own, that belongs nowhere.
            **kwargs: Options of the model for this call.

        Returns:
            The assessment, the samples and the similarity matrix in it.

        Raises:
            InputError: If there is a ``run_id`` without an answer.

        Example:
            >>> from langchain_core.language_models import FakeListChatModel
            >>> from snne_guard import SNNEGuard
            >>> model = FakeListChatModel(responses=["Paris", "Lyon"])
            >>> guard = SNNEGuard(model, n=3)
            >>> found = guard.assess("The capital of France?", answer="Paris")
            >>> found.answer.text, found.n_used, found.cost.calls
            ('Paris', 3, 2)
        """
        request = self.request(
            input, config or {}, kwargs, answered_in=_run(run_id, answer)
        )
        return GuardedCall(request).assess(answer)

    async def aassess(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        answer: AIMessage | str | None = None,
        run_id: UUID | str | None = None,
        **kwargs: Any,
    ) -> Assessment:
        """Do what ``assess`` does without blocking the event loop."""
        request = self.request(
            input, config or {}, kwargs, answered_in=_run(run_id, answer)
        )
        return await AsyncGuardedCall(request).assess(answer)

    def preflight(
        self, config: RunnableConfig | None = None, *, timeout: float = 40.0
    ) -> Preflight:
        """Find out by asking whether this model's samples can be trusted.

        It takes about ten short requests, through the very code that draws samples.
        The guard's later calls know what was found: how many replies a request may
        ask for, whether log-probabilities come, whether a temperature is taken.

        Args:
            config: LangChain's configuration.
            timeout: Seconds after which the report is made from what has come.

        Returns:
            Whether samples can be trusted, what was found, and suitable settings.

        Raises:
            GuardTimeoutError: If not even the first reply came in time.
            ConfigurationError: If this model is never sampled.
            Exception: The provider's own, if it did not answer at all.
        """
        return preflight(self.request("", config or {}, {}), timeout=timeout)

    async def apreflight(
        self,
        config: RunnableConfig | None = None,
        *,
        timeout: float = 40.0,  # noqa: ASYNC109 - mirrors the thread twin
    ) -> Preflight:
        """Do what ``preflight`` does without blocking the event loop."""
        request = self.request("", config or {}, {})
        return await apreflight(request, timeout=timeout)

    def request(
        self,
        value: LanguageModelInput,
        config: RunnableConfig,
        kwargs: Mapping[str, Any],
        *,
        outer_run: bool = False,
        answered_in: str | None = None,
    ) -> Request:
        """Return one call of this guard, before anything is drawn.

        Args:
            value: What the application passes in.
            config: Its configuration, the callbacks those of a child run.
            kwargs: Options of the model for this call.
            outer_run: Whether a chat-model run around it counts all usage.
            answered_in: The run that gave the answer, if it is over.
        """
        return Request(
            core=self._core,
            value=value,
            config=config,
            kwargs=kwargs,
            outer_run=outer_run,
            answered_in=answered_in,
        )


def _run(run_id: UUID | str | None, answer: object) -> str | None:
    if run_id is not None and answer is None:
        msg = "run_id names the run that gave the answer: pass the answer as well"
        raise InputError(msg)
    return None if run_id is None else str(run_id)
