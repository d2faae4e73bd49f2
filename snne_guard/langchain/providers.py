"""One table of provider classes: how each one's requests are asked for samples.

A row was read from the source of the class that it names. A class in no row gets the
safe defaults: ``temperature`` where it has such a field, one reply a request, and no
log-probabilities. A row of your own is the option ``provider`` of a guard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How one provider's LangChain class is asked for samples.

    Attributes:
        classes: Package and class, such as ``"langchain_openai.ChatOpenAI"``. The row
            is for their subclasses too; the nearest base class decides. A row of your
            own without classes is for every model.
        temperature: Field that sets the sampling temperature, None where there is none.
        temperature_range: Lowest and highest temperature that the provider takes.
        n: Option that asks one request for several replies, None where there is none.
        logprobs: Whether the option ``logprobs`` asks for token log-probabilities, and
            ``top_logprobs`` for those of other tokens as well.
        reports_finish_reason: Whether the class always says how a reply ended, so that
            a reply that does not was cut off.
        client_parses: Whether the client itself parses structured replies
            (``response_format``), and raises where one does not fit.
        stores: Whether the provider stores replies unless told ``store=False``.
        retries_statuses: Whether its ``max_retries`` covers what servers answer, and
            not connections alone.
        greedy: Whether the class takes the likeliest text each time unless it is told a
            temperature.
        applies: Tells of a model and the options of a call whether the row is for it,
            where the class alone does not; None where it does.

    Example:
        >>> mine = Provider(classes=("my_package.MyChat",), n="num_replies")
        >>> mine.clamped(3.0)
        2.0
    """

    classes: tuple[str, ...] = ()
    temperature: str | None = "temperature"
    temperature_range: tuple[float, float] = (0.0, 2.0)
    n: str | None = None
    logprobs: bool = False
    reports_finish_reason: bool = True
    client_parses: bool = False
    stores: bool = False
    retries_statuses: bool = True
    greedy: bool = False
    applies: Callable[[Any, Mapping[str, Any]], bool] | None = None

    def clamped(self, temperature: float) -> float:
        """Return the nearest temperature that the provider takes."""
        low, high = self.temperature_range
        return min(max(temperature, low), high)


def _uses_responses(model: Any, kwargs: Mapping[str, Any]) -> bool:
    """Ask langchain-openai if it would send to OpenAI's Responses API."""
    options = {**kwargs, **(model.model_kwargs or {})}
    return bool(model._use_responses_api(options))  # noqa: SLF001 - its own rule


def _holds_greedy_pipeline(model: Any, kwargs: Mapping[str, Any]) -> bool:
    if not _holds_pipeline(model, kwargs):
        return False
    given = getattr(model.llm, "pipeline_kwargs", None) or {}
    pipeline = getattr(model.llm, "pipeline", None)
    config = getattr(pipeline, "generation_config", None)
    return not given.get("do_sample", getattr(config, "do_sample", False))


def _holds_pipeline(model: Any, kwargs: Mapping[str, Any]) -> bool:  # noqa: ARG001 - what ``applies`` gets
    return any(base.__name__ == "HuggingFacePipeline" for base in type(model.llm).mro())


_OPENAI = Provider(
    classes=("langchain_openai.BaseChatOpenAI",),
    n="n",
    logprobs=True,
    client_parses=True,
)
_HUGGING_FACE = ("langchain_huggingface.ChatHuggingFace",)
_PIPELINE = Provider(
    classes=_HUGGING_FACE,
    temperature=None,
    reports_finish_reason=False,
    applies=_holds_pipeline,
)

DEFAULT = Provider(temperature_range=(0.0, math.inf), reports_finish_reason=False)
"""Row of every class that no other row names."""

PROVIDERS: tuple[Provider, ...] = (
    # The Responses API has no n, and the class drops log-probabilities.
    replace(_OPENAI, n=None, logprobs=False, stores=True, applies=_uses_responses),
    _OPENAI,
    replace(_OPENAI, classes=("langchain_deepseek.ChatDeepSeek",), n=None),
    # It gives log-probabilities in a form of its own.
    replace(_OPENAI, classes=("langchain_together.ChatTogether",), logprobs=False),
    Provider(
        classes=(
            "langchain_anthropic.ChatAnthropic",
            "langchain_aws.ChatBedrockConverse",
        ),
        temperature_range=(0.0, 1.0),
    ),
    Provider(
        classes=("langchain_google_genai.ChatGoogleGenerativeAI",), n="candidate_count"
    ),
    Provider(
        classes=("langchain_aws.ChatBedrock",),
        temperature_range=(0.0, 1.0),
        reports_finish_reason=False,
    ),
    Provider(
        classes=("langchain_mistralai.ChatMistralAI",),
        temperature_range=(0.0, 1.0),
        n="n",
        retries_statuses=False,
    ),
    Provider(classes=("langchain_groq.ChatGroq",)),
    Provider(
        classes=("langchain_ollama.ChatOllama",),
        temperature_range=(0.0, math.inf),
        logprobs=True,
    ),
    # A pipeline has its temperature inside: TransformersChatModel draws from it.
    replace(_PIPELINE, greedy=True, applies=_holds_greedy_pipeline),
    _PIPELINE,
    Provider(classes=_HUGGING_FACE, logprobs=True),
    Provider(classes=("langchain_fireworks.ChatFireworks",), n="n", logprobs=True),
    Provider(
        classes=("snne_guard.TransformersChatModel",),
        temperature_range=(0.0, math.inf),
        n="n",
        logprobs=True,
    ),
    # A guard in a guard: its temperature is that of its own samples.
    Provider(
        classes=("snne_guard.SNNEGuard",), temperature=None, reports_finish_reason=False
    ),
)
"""The table; of the rows of one class the first that applies counts."""


def provider_of(
    model: BaseChatModel, options: Mapping[str, Any], *, own: Provider | None = None
) -> Provider:
    """Return the row for a model and a call's options; the user's own comes first."""
    if own is not None and not own.classes:
        return own
    rows = PROVIDERS if own is None else (own, *PROVIDERS)
    for base in type(model).__mro__:
        name = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        for row in rows:
            if name in row.classes and (
                row.applies is None or row.applies(model, options)
            ):
                return row
    return DEFAULT


def parameters_of(
    model: BaseChatModel, row: Provider, options: Mapping[str, Any]
) -> frozenset[str]:
    """Return the parameters that one model takes, as far as is known beforehand.

    A temperature is among them where the class has the field, or where the call sets
    one by itself, unless LangChain's profile of the model says that it takes none.
    """
    profile: Any = getattr(model, "profile", None) or {}
    takes = {
        "n": row.n is not None,
        "logprobs": row.logprobs,
        "top_logprobs": row.logprobs,
        "temperature": profile.get("temperature") is not False
        and (row.temperature in type(model).model_fields or "temperature" in options),
    }
    return frozenset(name for name, is_taken in takes.items() if is_taken)


# -- What the classes call things ------------------------------------------------------

MODEL_KEYS = ("model_name", "model", "model_id")
ENDING_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "status")

CALL_BLOCKS = frozenset(
    {
        *("custom_tool_call", "function_call", "function_call_signature"),
        *("input_json_delta", "invalid_tool_call", "tool_call", "tool_call_chunk"),
        "tool_use",
    }
)
"""Types of content blocks for calls, which stand in ``tool_calls`` too."""

FOR_TRACERS = frozenset({"ls_structured_output_format", "structured_output_format"})
"""Options that LangChain takes out before the provider sees them."""
