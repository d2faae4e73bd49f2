"""Guards for the ``openai`` package: a question in, an assessment out."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from snne_guard.assess.calibrated import calibration_of
from snne_guard.assess.openai_core import OpenAICore
from snne_guard.assess.openai_preflight import apreflight, preflight
from snne_guard.assess.openai_turn import AsyncOpenAITurn, OpenAITurn
from snne_guard.assess.preflight import Preflight
from snne_guard.assess.settings import PAPER, GuardSettings, complete
from snne_guard.decision import Calibration
from snne_guard.sampling.openai import ApiName
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.openai_messages import Messages
from snne_guard.sampling.openai_requests import Endpoint
from snne_guard.types import Assessment

if TYPE_CHECKING:
    import openai

__all__ = ["AsyncOpenAIGuard", "OpenAIGuard"]

ClientT = TypeVar("ClientT")


class _Guard(Generic[ClientT]):
    """What both twins share: they are made and shown alike."""

    def __init__(self, endpoint: Endpoint, settings: Mapping[str, Any]) -> None:
        owner = type(self).__name__
        self._core = OpenAICore.of(endpoint, complete(settings, owner=owner))
        self._settings = settings

    @classmethod
    def from_calibration(
        cls,
        client: ClientT,
        calibration: Calibration | str | PathLike[str],
        /,
        *,
        model: str | None = None,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> Self:
        """Return a guard with the settings and the threshold of a calibration.

        Args:
            client: As for the class.
            calibration: What ``snne-guard calibrate`` made, or the path of its file.
            model: Name of the model that it was made for.
            api: As for the class.
            options: As for the class.
            **settings: As for the class; one that differs from the calibration is
                refused, unless ``allow_mismatch=True`` is among them.

        Raises:
            ConfigurationError: If the model or a setting differs from what it was made
                for; the message lists all that do.
            InputError: If the file holds no calibration, or was changed.
            OSError: If the file cannot be read.
        """
        made: Any = {**calibration_of(calibration).guard_settings(), **settings}
        build: Any = cls  # both twins take the same
        guard: Self = build(client, model=model, api=api, options=options, **made)
        return guard

    @property
    def observer_failures(self) -> int:
        """Events that an observer raised on, or that were dropped for it."""
        return self._core.assessor.observers.failures

    def _over(self, client: object, *, asynchronous: bool) -> Self:
        ours = self._core.endpoint
        endpoint = Endpoint.of(
            client,
            model=ours.model or None,
            api=ours.api.name,
            options=ours.options,
            asynchronous=asynchronous,
        )
        other = copy(self)
        other._core = self._core.over(endpoint)  # noqa: SLF001 - one of our own
        return other

    def __repr__(self) -> str:
        """Show whom it asks and the settings that are plain, and no secret."""
        endpoint = self._core.endpoint
        shown = [
            f", {name}={value!r}"
            for name, value in self._settings.items()
            if isinstance(value, str | int | float)
        ]
        asked = f"{type(endpoint.client).__name__}, model={endpoint.model!r}"
        return f"{type(self).__name__}({asked}{''.join(shown)})"


class OpenAIGuard(_Guard["openai.OpenAI"]):
    """Asks a model of the OpenAI API, and measures how sure it is of its answer.

    The question is asked once as you would ask it, and ``n - 1`` times more at
    ``temperature`` 1; how much the answers differ in meaning is the uncertainty
    ``u``. It delivers nothing: what is done with the answer is your decision, and
    the assessment says what it should be. A client that delivers, as a drop-in for your
    own, is ``guard_client`` of ``snne_guard_integrations.openai``.

    Args:
        client: ``openai.OpenAI``, ``openai.AzureOpenAI``, or a client like them. It is
            never changed; samples go out without its retries, for they have their own.
        model: Name of the model; at Azure, of the deployment. It may be left out
            where each call names its own.
        api: ``"chat"`` for Chat Completions, ``"responses"`` for the Responses API.
        options: What your own requests carry, under the names of ``create``:
            ``temperature``, ``max_tokens``, ``seed``, ``tools``, and so on.
        **settings: How it samples, scores and decides, see ``GuardSettings``; the most
            important are ``n`` and ``threshold``.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.

    Example::

        guard = OpenAIGuard(OpenAI(), model="gpt-4.1-mini", n=5, threshold=0.4)
        assessment = guard.assess("Who won the 1907 village chess cup of Ebnat?")
        if assessment.decision == "accept":
            print(assessment.answer.text)
    """

    def __init__(
        self,
        client: openai.OpenAI,
        *,
        model: str | None = None,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> None:
        endpoint = Endpoint.of(
            client, model=model, api=api, options=options, asynchronous=False
        )
        super().__init__(endpoint, settings)

    @classmethod
    def paper(
        cls,
        client: openai.OpenAI,
        *,
        model: str | None = None,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> Self:
        """Return a guard that does exactly what the paper does.

        Ten samples without the answer, SNNE with tau = 1, rouge-score's tokens
        (arXiv 2506.00245, section 4).
        """
        merged: Any = {**PAPER, **settings}
        return cls(client, model=model, api=api, options=options, **merged)

    def with_client(self, client: openai.OpenAI) -> Self:
        """Return a guard that asks with another client, under the same limits.

        Budget, breaker, observers and the cap on requests are shared, and what was
        learnt of the models where the client asks at the same address.

        Args:
            client: Such as ``client.with_options(timeout=5)``.

        Raises:
            ConfigurationError: If it is no client of this kind.
        """
        return self._over(client, asynchronous=False)

    def begin(
        self,
        *,
        api: ApiName | None = None,
        question: str | None = None,
        **request: Any,  # noqa: ANN401 - the API's own
    ) -> OpenAITurn:
        """Draw samples beside an answer that you draw yourself, streamed or not.

        Args:
            api: Which API you ask, None for the guard's own.
            question: What the user asks, as for ``assess``.
            **request: What you call ``create`` with, ``model`` and ``messages`` (or
                ``input``) included. A request for more than one answer, or one that
                could do more than answer, gets no samples.

        Raises:
            InputError: If the messages are none.
            ConfigurationError: If there is no model, or no such API.
        """
        return OpenAITurn(*self._core.opened(Call, api, {**request}), question)

    def assess(
        self,
        messages: Messages,
        /,
        *,
        model: str | None = None,
        question: str | None = None,
        **options: Any,  # noqa: ANN401 - the API's own
    ) -> Assessment:
        """Draw the answer and its samples, score and decide.

        Args:
            messages: A question, or a list of messages as the API takes them.
            model: Another model than the guard's, for this call.
            question: What the user asks in them, for similarities that use it. None:
                what the guard's own ``question`` says, or all of the last message.
            **options: Further options of your request, for this call.

        Raises:
            openai.OpenAIError: What the answer itself fails with, unchanged.
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``, or if the
                provider gave no answer and no error.
            GuardTimeoutError: If it did not come within ``timeout``.
            InputError: If the messages are none.
            ConfigurationError: If an option is one that the guard sets itself.
        """
        core = self._core.at(model=model, api=None)
        turn = OpenAITurn(core, core.call(Call, messages, options), question)
        outcome = self._run(turn)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def preflight(self, *, timeout: float = 40.0) -> Preflight:
        """Find out by asking whether this model's samples can be trusted.

        It takes about nine short requests, through the very code that draws samples,
        and this guard's later calls know what was found.

        Args:
            timeout: Seconds after which the report is made from what has come.

        Raises:
            openai.OpenAIError: What the model fails with if it does not answer at all.
            GuardTimeoutError: If not even the first reply came in time.
            ConfigurationError: If this model is never sampled.
        """
        return preflight(self._core.at(model=None, api=None), timeout=timeout)

    def _run(self, turn: OpenAITurn) -> Assessment | Exception:
        with turn:
            turn.answered(turn.ask(turn.plainly))
            assessment, error = turn.settle()
            return error or assessment


class AsyncOpenAIGuard(_Guard["openai.AsyncOpenAI"]):
    """The twin of ``OpenAIGuard`` for ``openai.AsyncOpenAI``.

    Args:
        client: ``openai.AsyncOpenAI``, ``openai.AsyncAzureOpenAI``, or one like them.
        model: Name of the model; at Azure, of the deployment. It may be left out
            where each call names its own.
        api: ``"chat"`` or ``"responses"``.
        options: What your own requests carry, under the names of ``create``.
        **settings: How it samples, scores and decides, see ``GuardSettings``; an
            ``on_uncertain`` function may be async.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        *,
        model: str | None = None,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> None:
        endpoint = Endpoint.of(
            client, model=model, api=api, options=options, asynchronous=True
        )
        super().__init__(endpoint, settings)

    @classmethod
    def paper(
        cls,
        client: openai.AsyncOpenAI,
        *,
        model: str | None = None,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> Self:
        """Return a guard that does exactly what the paper does."""
        merged: Any = {**PAPER, **settings}
        return cls(client, model=model, api=api, options=options, **merged)

    def with_client(self, client: openai.AsyncOpenAI) -> Self:
        """Return a guard that asks with another client, under the same limits.

        Budget, breaker, observers and the cap on requests are shared, and what was
        learnt of the models where the client asks at the same address.

        Args:
            client: Such as ``client.with_options(timeout=5)``.

        Raises:
            ConfigurationError: If it is no client of this kind.
        """
        return self._over(client, asynchronous=True)

    def begin(
        self,
        *,
        api: ApiName | None = None,
        question: str | None = None,
        **request: Any,  # noqa: ANN401 - the API's own
    ) -> AsyncOpenAITurn:
        """Draw samples beside an answer that you draw yourself, streamed or not.

        Args:
            api: Which API you ask, None for the guard's own.
            question: What the user asks, as for ``assess``.
            **request: What you call ``create`` with, ``model`` and ``messages`` (or
                ``input``) included. A request for more than one answer, or one that
                could do more than answer, gets no samples.

        Raises:
            InputError: If the messages are none.
            ConfigurationError: If there is no model, or no such API.
        """
        return AsyncOpenAITurn(
            *self._core.opened(AsyncCall, api, {**request}), question
        )

    async def assess(
        self,
        messages: Messages,
        /,
        *,
        model: str | None = None,
        question: str | None = None,
        **options: Any,  # noqa: ANN401 - the API's own
    ) -> Assessment:
        """Draw the answer and its samples, score and decide; block no event loop.

        Args:
            messages: A question, or a list of messages as the API takes them.
            model: Another model than the guard's, for this call.
            question: What the user asks in them, for similarities that use it. None:
                what the guard's own ``question`` says, or all of the last message.
            **options: Further options of your request, for this call.

        Raises:
            openai.OpenAIError: What the answer itself fails with, unchanged.
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``, or if the
                provider gave no answer and no error.
            GuardTimeoutError: If it did not come within ``timeout``.
            InputError: If the messages are none.
            ConfigurationError: If an option is one that the guard sets itself.
        """
        core = self._core.at(model=model, api=None)
        turn = AsyncOpenAITurn(core, core.call(AsyncCall, messages, options), question)
        outcome = await self._run(turn)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def preflight(
        self,
        *,
        timeout: float = 40.0,  # noqa: ASYNC109 - mirrors the thread twin
    ) -> Preflight:
        """Find out by asking whether this model's samples can be trusted.

        Args:
            timeout: Seconds after which the report is made from what has come.

        Raises:
            openai.OpenAIError: What the model fails with if it does not answer at all.
            GuardTimeoutError: If not even the first reply came in time.
            ConfigurationError: If this model is never sampled.
        """
        return await apreflight(self._core.at(model=None, api=None), timeout=timeout)

    async def _run(self, turn: AsyncOpenAITurn) -> Assessment | Exception:
        async with turn:
            turn.answered(await turn.ask(turn.plainly))
            assessment, error = await turn.settle()
            return error or assessment
