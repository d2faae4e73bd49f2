"""One table of provider classes: how each one's requests are asked for samples.

A row was read from the source of the class that it names. A class in no row gets the
safe defaults: ``temperature`` where it has such a field, one reply a request, and no
log-probabilities. Put rows of your own in front, when the program starts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.sampling.langchain.wrappers import (
    ChatRunnable,
    bound_models,
    fields_of,
    models_in,
)
from snne_guard.sampling.options import answer_settings
from snne_guard.sampling.replies import ProviderCapabilities

__all__ = [
    "PROVIDERS",
    "Provider",
    "Rejected",
    "answer_settings_of",
    "capabilities",
    "model_key",
    "model_name_of",
    "parameters_of",
    "provider_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How one provider's LangChain class is asked for samples.

    Attributes:
        classes: Package and class, such as ``"langchain_openai.ChatOpenAI"``. The row
            is for their subclasses too; the nearest base class decides.
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
    applies: Callable[[Any, Mapping[str, Any]], bool] | None = None

    def clamped(self, temperature: float) -> float:
        """Return the nearest temperature that the provider takes."""
        low, high = self.temperature_range
        return min(max(temperature, low), high)


Rejected = defaultdict[Hashable, set[str]]
"""Parameters that models were seen to reject, by ``model_key``."""


def _uses_responses(model: Any, kwargs: Mapping[str, Any]) -> bool:  # noqa: ANN401 - any provider's class
    """Return whether langchain-openai would send to OpenAI's Responses API."""
    options = {**kwargs, **(model.model_kwargs or {})}
    return bool(model._use_responses_api(options))  # noqa: SLF001 - its own rule


def _holds_pipeline(model: Any, kwargs: Mapping[str, Any]) -> bool:  # noqa: ANN401, ARG001 - as above
    return any(base.__name__ == "HuggingFacePipeline" for base in type(model.llm).mro())


_OPENAI = Provider(
    classes=("langchain_openai.BaseChatOpenAI",),
    n="n",
    logprobs=True,
    client_parses=True,
)
_HUGGING_FACE = ("langchain_huggingface.ChatHuggingFace",)

DEFAULT = Provider(temperature_range=(0.0, math.inf), reports_finish_reason=False)
"""Row of every class that no other row names."""

PROVIDERS: list[Provider] = [
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
    ),
    Provider(classes=("langchain_groq.ChatGroq",)),
    Provider(
        classes=("langchain_ollama.ChatOllama",),
        temperature_range=(0.0, math.inf),
        logprobs=True,
    ),
    # A pipeline has its temperature inside: TransformersChatModel draws from it.
    Provider(
        classes=_HUGGING_FACE,
        temperature=None,
        reports_finish_reason=False,
        applies=_holds_pipeline,
    ),
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
]
"""The table; of the rows of one class the first that applies counts."""


def provider_of(
    model: BaseChatModel, kwargs: Mapping[str, Any] | None = None
) -> Provider:
    """Return the row for a model and the options of a call."""
    for base in type(model).__mro__:
        name = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        for row in PROVIDERS:
            if name in row.classes and (
                row.applies is None or row.applies(model, kwargs or {})
            ):
                return row
    return DEFAULT


def parameters_of(
    model: BaseChatModel, row: Provider, kwargs: Mapping[str, Any]
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
        and (row.temperature in type(model).model_fields or "temperature" in kwargs),
    }
    return frozenset(name for name, is_taken in takes.items() if is_taken)


def capabilities(
    model: ChatRunnable,
    kwargs: Mapping[str, Any] | None = None,
    *,
    rejected: Rejected | None = None,
) -> ProviderCapabilities:
    """Return what can be asked of a model, or of every model inside wrappers.

    Args:
        model: A chat model, or wrappers around one or several.
        kwargs: Options of the call, which override bound ones.
        rejected: What the models have rejected so far.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> capabilities(FakeListChatModel(responses=["Paris"]))
        ProviderCapabilities(n=False, logprobs=False)
    """
    rejected = defaultdict(set) if rejected is None else rejected
    taken = [
        parameters_of(chat, provider_of(chat, options), options)
        - rejected[model_key(chat)]
        for chat, options in bound_models(model, kwargs)
    ]
    return ProviderCapabilities.of(frozenset.intersection(*taken))


# -- What the answer is drawn with, for calibrations -----------------------------------


def answer_settings_of(
    model: ChatRunnable, kwargs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings of the answer that are known, by a calibration's names.

    Left out is what the model's class has no field for, and what differs between
    several models.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"]).bind(stop=["."], top_p=0.9)
        >>> answer_settings_of(model)
        {'top_p': 0.9, 'stop': ['.']}
    """
    first, *others = [
        {**answer_settings(fields_of(chat)), **answer_settings(_given(options))}
        for chat, options in bound_models(model, kwargs)
    ]
    return {
        name: value
        for name, value in first.items()
        if all((name, value) in other.items() for other in others)
    }


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def model_name_of(model: ChatRunnable) -> dict[str, Any]:
    """Return ``{"model": name}``, with None where it has none; empty for several."""
    first, *others = models_in(model)
    return {} if others else {"model": _name_of(first)}


def model_key(model: BaseChatModel) -> Hashable:
    """Return what a model and its copies have in common, to remember them by."""
    return type(model), _name_of(model)


def _name_of(model: BaseChatModel) -> str | None:
    names = (getattr(model, field, None) for field in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str)), None)
