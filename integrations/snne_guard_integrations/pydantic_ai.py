"""Pydantic AI: a model whose answers are guarded, whichever provider it asks."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Unpack

from snne_guard import ConfigurationError, MissingExtraError, engine
from snne_guard.engine import (
    Draw,
    GuardState,
    Limiter,
    Outcome,
    Rejections,
    Request,
    Response,
    arun_steps,
    in_thread,
    may_act,
    option_key,
    options_for,
    read_cost,
    read_reply,
    request_of,
    with_failed,
    without_rejected,
)
from snne_guard.settings import GuardOptions, GuardSettings

try:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import (
        ModelMessage,
        ModelResponse,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        UserPromptPart,
    )
    from pydantic_ai.models import (
        CompletedStreamedResponse,
        Model,
        ModelRequestParameters,
        StreamedResponse,
        infer_model,
    )
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings, merge_model_settings
except ImportError as error:
    msg = "Pydantic AI"
    raise MissingExtraError(msg, extra="pydantic-ai") from error


class GuardedModel(WrapperModel):
    """A model of Pydantic AI whose answers are guarded.

    It stands wherever the model stood. ``ModelResponse.metadata["snne_guard"]`` holds
    the assessment; ``usage`` is that of the answer alone. A stream comes in one piece,
    after the decision. Calls of output tools are compared, those of function tools pass
    unscored unless ``tool_calls="score"``. If a tool runs at the provider, or OpenAI
    keeps the conversation, no sample is drawn (``side_effects``). If the output is not
    text, a refusal is an empty response, for which Pydantic AI raises
    ``ContentFilterError``. Batches raise an error, since nothing would be guarded.

    Args:
        wrapped: The model, or its name.
        fallback: Another model, or its name, for ``on_uncertain="fallback"``.
        other_models: Further models, or their names, that each draw one of the replies,
            at their own settings.
        **options: Those of ``SNNEGuard`` but ``views``, ``self_check`` and ``"judge"``,
            which a calibration must not have either. Different here: ``question`` gets
            the list of messages, and a function as ``on_uncertain`` returns one of the
            words, or a ``ModelResponse``.

    Raises:
        ConfigurationError: An option is unknown or makes no sense.

    Example:
        >>> from pydantic_ai import Agent
        >>> from pydantic_ai.models.test import TestModel
        >>> model = TestModel(custom_output_text="Paris")
        >>> agent = Agent(GuardedModel(model, n=3, threshold=0.4))
        >>> result = agent.run_sync("Capital of France?")
        >>> result.output, result.response.metadata["snne_guard"]["n_used"]
        ('Paris', 3)
    """

    def __init__(
        self,
        wrapped: Model | str,
        *,
        fallback: Model | str | None = None,
        other_models: Sequence[Model | str] | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        super().__init__(wrapped)
        other = None if fallback is None else infer_model(fallback)
        others = [infer_model(each) for each in other_models or ()]
        self._others = {each.model_name: each for each in others}
        names = [each.model_name for each in others]
        if self.wrapped.model_name in names:
            msg = f"the other model {self.wrapped.model_name!r} is the guarded model"
            raise ConfigurationError(msg)
        for name, each in self._others.items():
            if _acts(each, {}):
                msg = (
                    f"the other model {name!r} has tools that run at its provider, so "
                    "that its sample could act on the world"
                )
                raise ConfigurationError(msg)
        self._guard = GuardSettings.given(fallback=other, other_models=names, **options)
        for name in ("views", "self_check", "spans", "grounding"):
            value = getattr(self._guard, name)  # perhaps of the calibration
            if value == "judge" or (value and name in {"views", "self_check"}):
                msg = f"GuardedModel has no option {name}={value!r}"
                raise ConfigurationError(msg)
        self._guard.check_calibration({})
        self._state = GuardState(Limiter(self._guard.max_concurrency))

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the answer, or what stands in its place, with the assessment."""
        params = model_request_parameters
        learnt = self._state.rejections
        sender = _Sender(
            self.wrapped, messages, model_settings, params, learnt, self._others
        )
        prepare = partial(self._request, messages, sender.given, params)
        slow = self._guard.asks_functions  # they must not hold up the loop
        request = await in_thread(prepare) if slow else prepare()
        outcome = await engine.arun(request, sender)
        if outcome.delivery == "fallback":
            other: Model = self._guard.fallback
            response = await other.request(messages, model_settings, params)
        else:
            response = self._delivered(outcome, params)
        record = {"snne_guard": outcome.assessment.to_metadata()}
        return replace(response, metadata={**(response.metadata or {}), **record})

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002 - not of a draw
    ) -> AsyncGenerator[StreamedResponse]:
        """Give the whole answer as a stream."""
        params = model_request_parameters
        response = await self.request(messages, model_settings, params)
        yield CompletedStreamedResponse(
            response, model_request_parameters=params, replay_events=True
        )

    async def batch_encode(self, request: object) -> NoReturn:  # noqa: ARG002
        """Raise ``ConfigurationError``: nothing in a batch would be guarded."""
        msg = "a GuardedModel does not support batches: their answers come later"
        raise ConfigurationError(msg)

    def _request(
        self,
        messages: list[ModelMessage],
        given: Mapping[str, Any],
        params: ModelRequestParameters,
    ) -> Request:
        return request_of(
            messages,
            settings=self._guard,
            state=self._state,
            last=_last_prompt(messages),
            tools_bound=bool(params.function_tools or params.output_tools),
            structured=bool(params.output_tools) and not params.function_tools,
            model=self.wrapped.model_name,
            schema=params.output_mode in _JSON_MODES,
            partial=any(name.endswith("_previous_response_id") for name in given),
            side_effects=bool(params.native_tools) or _acts(self.wrapped, given),
            answer_settings={
                "model": self.wrapped.model_name,
                "answer_temperature": given.get("temperature"),
                "top_p": given.get("top_p"),
                "max_tokens": given.get("max_tokens"),
                "stop": given.get("stop_sequences"),
            },
        )

    def _delivered(
        self, outcome: Outcome, params: ModelRequestParameters
    ) -> ModelResponse:
        """Return the answer, or the text that is delivered in its place."""
        if outcome.delivery == "replacement":
            given = outcome.replacement
            if not isinstance(given, ModelResponse):
                kind = type(given).__name__  # not its text, which may be the answer
                msg = f"expected a ModelResponse from on_uncertain, got {kind}"
                raise ConfigurationError(msg)
            return given
        if outcome.delivery == "nothing" or outcome.answer is None:
            assert outcome.error is not None  # noqa: S101 - why there is nothing
            raise outcome.error
        drawn: ModelResponse = outcome.answer.raw
        if outcome.delivery != "refusal":
            return drawn
        # Its id is left out: a server that continues from it would tell the answer.
        is_json = params.output_mode in _JSON_MODES
        says_text = params.allow_text_output and not is_json
        return ModelResponse(
            parts=[TextPart(str(self._guard.refusal))] if says_text else [],
            usage=drawn.usage,
            model_name=drawn.model_name,
            provider_name=drawn.provider_name,
            finish_reason="stop" if says_text else "content_filter",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One request that can be sent as it is; ``optional`` is what it can do without."""

    model: Model
    settings: Any
    texts: list[str]
    optional: frozenset[str]
    rejected: frozenset[str]
    temperature_set: bool


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends the draws of one guarded call to a model."""

    model: Model
    messages: list[ModelMessage]
    settings: ModelSettings | None
    params: ModelRequestParameters
    rejections: Rejections
    others: Mapping[str, Model]

    @property
    def given(self) -> Mapping[str, Any]:
        """Settings of the model and of the request together."""
        return merge_model_settings(self.model.settings, self.settings) or {}

    def send(self, _: Draw, /) -> Response:
        """Fail: only tasks send, since models of Pydantic AI are asynchronous."""
        msg = "a model of Pydantic AI can only be asked from a task"
        raise RuntimeError(msg)

    async def asend(self, draw: Draw, /) -> Response:
        """Send one request and wait for its response."""
        if draw.other_model is not None:
            return await self._ask_other(self.others[draw.other_model])
        key = self.model.model_name, option_key([self.given])
        make = partial(self._request_for, draw)
        steps = without_rejected(make, self.rejections, key)
        (asked, response), failed = await arun_steps(steps, self._post)
        read = replace(
            _read(response),
            temperature_set=asked.temperature_set,
            rejected=asked.rejected,
        )
        return with_failed(read, failed)

    async def _ask_other(self, model: Model) -> Response:
        """Ask another model, at its own settings but for limit and stop texts."""
        given: Mapping[str, Any] = self.settings or {}
        taken: Any = {name: given[name] for name in _TAKEN & given.keys()}
        if any(map(_is_stored, _leaves(model))):
            taken["openai_store"] = False
        return _read(await model.request(self.messages, taken, self.params))

    async def _post(self, asked: _Asked) -> ModelResponse:
        return await asked.model.request(self.messages, asked.settings, self.params)

    def _request_for(self, draw: Draw, *, left_out: frozenset[str]) -> _Asked:
        """Return the request for a draw; ``options_for`` says what it changes."""
        leaves = _leaves(self.model)
        dropped = any(map(_drops_temperature, leaves))
        wanted = frozenset[str]() if dropped else draw.added({"temperature"})
        optional = wanted - left_out
        temperature = draw.temperature if optional else None
        if temperature is not None:
            highest = min(_HIGHEST.get(leaf.system, math.inf) for leaf in leaves)
            temperature = min(temperature, highest)
        change: Any = partial(options_for, draw, temperature=temperature)
        model, settings = self.model, change(self.settings or {})
        if draw.role != "answer":
            model = _changed(model, change)
            if "openai_store" in self.given or any(map(_is_stored, leaves)):
                settings["openai_store"] = False
        if temperature is not None:
            settings["temperature"] = temperature
        parts = [part for message in self.messages for part in message.parts]
        return _Asked(
            model=model,
            settings=settings,
            texts=[str(getattr(part, "content", "")) for part in parts],
            optional=optional,
            rejected=wanted & left_out,
            temperature_set=temperature == draw.temperature,
        )


_TAKEN = frozenset({"max_tokens", "stop_sequences"})
"""What another model gets of a request's settings."""

_JSON_MODES = frozenset({"native", "prompted"})
"""Modes in which the answer is a text of JSON."""

_HIGHEST = {"anthropic": 1.0, "bedrock": 1.0, "mistral": 1.0}
"""The highest temperature that providers take, where it is below 2."""


def _leaves(model: Model) -> list[Model]:
    """Return the models inside wrappers."""
    if isinstance(model, WrapperModel):
        return _leaves(model.wrapped)
    if isinstance(model, FallbackModel):
        return [leaf for each in model.models for leaf in _leaves(each)]
    return [model]


def _acts(model: Model, settings: Mapping[str, Any]) -> bool:
    """Recognise a draw that could act on the world, by its model and its settings."""
    given = [
        {**(leaf.settings or {}), **settings, "model": leaf.model_name}
        for leaf in _leaves(model)
    ]
    return any(
        "openai_conversation_id" in each or "openrouter_preset" in each or may_act(each)
        for each in given
    )


def _changed(model: Model, change: Callable[[Any], Any]) -> Model:
    """Return a copy of a model whose own settings are changed."""
    copied = copy(model)
    if isinstance(copied, WrapperModel):
        copied.wrapped = _changed(copied.wrapped, change)
    elif isinstance(copied, FallbackModel):
        copied.models = [_changed(each, change) for each in copied.models]
    elif copied.settings:
        copied._settings = change(copied.settings)  # noqa: SLF001 - no other way in
    return copied


def _drops_temperature(model: Model) -> bool:
    """Recognise models whose temperature Pydantic AI leaves out with a warning."""
    profile: Any = model.profile
    always = not profile.get("openai_supports_reasoning_effort_none")
    reasons = always or profile.get("thinking_enabled_by_default")
    return bool(
        profile.get("anthropic_disallows_sampling_settings")
        or profile.get("bedrock_disallows_sampling_settings")
        or (profile.get("openai_supports_reasoning") and reasons)
    )


def _is_stored(model: Model) -> bool:
    """Recognise models whose replies OpenAI stores, unless told not to."""
    return "Responses" in type(model).__name__


def _read(response: ModelResponse) -> Response:
    parts, usage = response.parts, response.usage
    known = TextPart | ThinkingPart | ToolCallPart
    finish = response.finish_reason
    reply = read_reply(
        text="".join(part.content for part in parts if isinstance(part, TextPart)),
        finish_reason="tool_calls" if finish == "tool_call" else finish,
        logprobs=(response.provider_details or {}).get("logprobs"),
        calls=[(p.tool_name, p.args) for p in parts if isinstance(p, ToolCallPart)],
        other_content=response.state != "complete"
        or not all(isinstance(part, known) for part in parts),
        complete_if_unsaid=True,
        model=response.model_name,
        response_id=response.provider_response_id,
    )
    counts = {
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.details.get("reasoning_tokens")
        or usage.details.get("thoughts_tokens"),  # Gemini's word
    }
    cost = read_cost([reply], counts)
    cost = replace(cost, cache_creation_tokens=usage.cache_write_tokens)
    return Response(replies=(reply,), cost=cost, raw=response)


def _last_prompt(messages: Sequence[ModelMessage]) -> str | None:
    """Return the text of the user's last prompt."""
    parts = [part for message in messages for part in message.parts]
    prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
    content = prompts[-1] if prompts else None
    if content is None or isinstance(content, str):
        return content
    return "".join(item for item in content if isinstance(item, str))
