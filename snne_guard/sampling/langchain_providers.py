"""The table of LangChain providers: one row each, and which row a model is in.

Every row was read from the source of the class it names. A row with ``tested=True`` is
run by the tests, against a local server that speaks that provider's protocol.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.sampling.langchain_clients import (
    bedrock_clients,
    google_clients,
    lazy_clients,
    resource_clients,
    root_clients,
)
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_stand_ins import (
    can_be_drawn_from,
    on_the_same_weights,
)
from snne_guard.sampling.options import ANY_LIMIT

__all__ = [
    "LOGPROB_PATHS",
    "OPENAI_RESPONSES",
    "PROVIDERS",
    "SERVERS",
    "TRANSFORMERS",
    "UNKNOWN",
    "provider_of",
    "takes_temperature",
]

_ASKED = {"logprobs": True}
_CONTENT = ("logprobs.content",)
_PIPELINE = ("llm", "HuggingFacePipeline")
_ONCE = {"max_retries": 0}
"""No retry; a class whose tenacity counts attempts stops after the first as well."""

UNKNOWN = Provider(
    name="any other",
    temperature_range=(0.0, math.inf),
    temperature_note="where the class has no such field: reason `temperature_unset`",
    logprobs_note="not asked for: whether they come is not known",
    limits=ANY_LIMIT,
    off=_ONCE,
    clients=root_clients,
    acting=("conversation", "background", "mcp_servers", "web_search_options"),
)
"""The safe path, for models that are in no row."""

OPENAI = Provider(
    name="OpenAI",
    classes=("ChatOpenAI", "BaseChatOpenAI"),
    tested=True,
    temperature_note="refused or ignored by reasoning models",
    n="n",
    n_note="at most 128 a request",
    logprobs=_ASKED,
    logprobs_at=_CONTENT,
    logprobs_note="reasoning models give none",
    limits=("max_tokens", "max_completion_tokens"),
    clients=root_clients,
    acting=("conversation", "background", "web_search_options"),
)
OPENAI_RESPONSES = replace(
    OPENAI,
    name="OpenAI, Responses API",
    n=None,
    n_note="the API has none",
    logprobs={},
    logprobs_at=(),
    logprobs_note="dropped by the class: set `use_responses_api=False` for them",
    limits=("max_tokens", "max_completion_tokens", "max_output_tokens"),
)
"""Chosen by langchain-openai itself where an option or a tool needs that API."""

TRANSFORMERS = Provider(
    name="Hugging Face, in this process",
    classes=("TransformersChatModel",),
    tested=True,
    temperature_range=(0.0, math.inf),
    n="n",
    n_note="all from one prefill",
    logprobs=_ASKED,
    logprobs_at=_CONTENT,
    logprobs_note="of the model itself, before temperature, top-k and top-p",
    limits=("max_tokens",),
)

PROVIDERS: tuple[Provider, ...] = (
    OPENAI,
    OPENAI_RESPONSES,
    replace(
        OPENAI,
        name="Azure OpenAI",
        classes=("AzureChatOpenAI",),
        n_note="the class drops them all where one was filtered",
    ),
    Provider(
        name="Anthropic",
        classes=("ChatAnthropic",),
        tested=True,
        temperature_range=(0.0, 1.0),
        temperature_note="only 1 with extended thinking, which is what samples take",
        n_note="the API has none",
        logprobs_note="the API has none",
        limits=("max_tokens", "max_tokens_to_sample"),
        seed=None,
        blank_stops=False,
        off=_ONCE,
        clients=lazy_clients,
        acting=("mcp_servers",),
    ),
    Provider(
        name="Google Gemini",
        classes=("ChatGoogleGenerativeAI",),
        tested=True,
        n="generation_config.candidate_count",
        n_note="up to 8; most models of the third generation take 1",
        logprobs_note="the class drops them",
        limits=("max_output_tokens",),
        seed="generation_config.seed",
        off={"max_retries": 1},  # 0 is the client's own default
        clients=google_clients,
        acting=("code_execution",),
    ),
    Provider(
        name="Amazon Bedrock, Converse",
        classes=("ChatBedrockConverse",),
        tested=True,
        temperature_range=(0.0, 1.0),
        temperature_note="left out by the class for models that take none",
        n_note="the API has none",
        logprobs_note="the API has none",
        limits=("max_tokens",),
        seed=None,
        blank_stops=False,  # Anthropic's models there
        in_full="inferenceConfig",
        in_full_too=("inference_config",),
        limit_in_full="maxTokens",
        clients=bedrock_clients,
    ),
    Provider(
        name="Amazon Bedrock, InvokeModel",
        classes=("ChatBedrock",),
        tested=True,
        temperature_range=(0.0, 1.0),
        n_note="the class reads one reply",
        logprobs_note="the class drops them",
        limits=("max_tokens",),
        seed=None,
        blank_stops=False,  # likewise
        clients=bedrock_clients,
    ),
    Provider(
        name="Mistral",
        classes=("ChatMistralAI",),
        tested=True,
        temperature_range=(0.0, 1.0),
        n="n",
        n_note="refused by some models",
        logprobs_note="the API has none",
        limits=("max_tokens",),
        seed="random_seed",
        off=_ONCE,
    ),
    Provider(
        name="Groq",
        classes=("ChatGroq",),
        tested=True,
        n_note="the API takes 1 only",
        logprobs_note="the API refuses them",
        limits=("max_tokens", "max_completion_tokens"),
        off=_ONCE,
        clients=resource_clients,
        acting=("search_settings", "compound_custom"),
    ),
    Provider(
        name="Ollama",
        classes=("ChatOllama",),
        tested=True,
        temperature_range=(0.0, math.inf),
        n_note="the API has none",
        logprobs=_ASKED,
        logprobs_at=("logprobs",),
        logprobs_note="servers before 0.12.11 give none",
        limits=("num_predict",),
        seed="seed",
        seed_is_field=True,
        in_full="options",
        limit_in_full="num_predict",
    ),
    TRANSFORMERS,
    replace(
        TRANSFORMERS,
        name="Hugging Face, local text generation",
        classes=("ChatHuggingFace",),
        holds=_PIPELINE,
        only_if=can_be_drawn_from,
        stand_in=on_the_same_weights,
        logprobs={},
        logprobs_at=(),
        logprobs_note="the class gives none for the answer",
    ),
    Provider(
        name="Hugging Face, local pipeline",
        classes=("ChatHuggingFace",),
        holds=_PIPELINE,
        temperature=None,
        temperature_note="set inside the pipeline",
        n_note="the class reads one reply",
        logprobs_note="the class gives none",
        limits=(),
        seed=None,
    ),
    Provider(
        name="Hugging Face, endpoints",
        classes=("ChatHuggingFace",),
        tested=True,
        n_note="the client says that it is unused",
        logprobs=_ASKED,
        logprobs_at=_CONTENT,
        logprobs_note="depends on the provider behind",
        limits=("max_tokens",),
    ),
    Provider(
        name="LiteLLM",
        classes=("ChatLiteLLM",),
        n_note="dropped by some of the providers behind",
        logprobs_note="not asked for: many of the providers behind refuse them",
        limits=("max_tokens",),
        off={"max_retries": 1},
        request={"max_retries": 0, "num_retries": 0},
    ),
    Provider(
        name="Fireworks",
        classes=("ChatFireworks",),
        tested=True,
        n="n",
        logprobs=_ASKED,
        logprobs_at=_CONTENT,
        limits=("max_tokens", "max_completion_tokens"),
        off=_ONCE,
    ),
    replace(
        OPENAI,
        name="Together",
        classes=("ChatTogether",),
        temperature_note="",
        n_note="",
        logprobs={"logprobs": 1},
        logprobs_at=("logprobs.token_logprobs",),
        logprobs_note="",
    ),
    replace(
        OPENAI,
        name="DeepSeek",
        classes=("ChatDeepSeek",),
        temperature_note="ignored by the reasoner",
        n=None,
        n_note="the API takes 1 only",
        logprobs_note="the reasoner refuses them",
    ),
    replace(
        OPENAI,
        name="xAI",
        classes=("ChatXAI",),
        temperature_note="",
        n_note="",
        logprobs_note="reasoning models give none",
        acting=(*OPENAI.acting, "search_parameters"),
    ),
)
"""One row a provider; of the rows that name one class, the first that fits."""

SERVERS: tuple[Provider, ...] = (
    replace(
        OPENAI,
        name="llama.cpp",
        temperature_note="",
        n_note="at most the slots of the server, else refused",
        logprobs_note="of the model, before its samplers",
    ),
    replace(
        OPENAI,
        name="vLLM",
        temperature_note="",
        n_note="",
        logprobs_note="before temperature, unless `--logprobs-mode` says otherwise",
    ),
    replace(
        OPENAI,
        name="TGI",
        tested=False,
        temperature_note="",
        n_note="ignored: what is missing is asked for one by one",
        logprobs_note="",
    ),
    replace(
        OPENAI,
        name="SGLang",
        tested=False,
        temperature_note="",
        n_note="",
        logprobs_note="",
    ),
)
"""Servers that are asked through ``ChatOpenAI``, in the row of OpenAI."""

LOGPROB_PATHS: tuple[tuple[str, ...], ...] = tuple(
    dict.fromkeys(tuple(at.split(".")) for row in PROVIDERS for at in row.logprobs_at)
)
"""Every place in which a provider of the table puts log-probabilities."""


def provider_of(model: BaseChatModel) -> Provider:
    """Return the row of a model: what its class declares, else by its bases."""
    declared = getattr(type(model), "snne_guard_provider", None)
    if isinstance(declared, Provider):
        return declared
    fitting = (row for row in _rows(type(model)) if _fits(row, model))
    return next(fitting, UNKNOWN)


def takes_temperature(model: BaseChatModel) -> bool:
    """Return whether a temperature can be set on a model, as far as is known.

    LangChain's profiles say it of reasoning models (``profile["temperature"]``).
    """
    if provider_of(model).temperature not in type(model).model_fields:
        return False
    profile: Any = getattr(model, "profile", None) or {}
    return profile.get("temperature") is not False


@lru_cache
def _rows(kind: type[BaseChatModel]) -> tuple[Provider, ...]:
    """Return the rows that name a class or one of its bases, the nearest first."""
    return tuple(
        row
        for base in kind.__mro__
        for row in PROVIDERS
        if base.__name__ in row.classes
    )


def _fits(row: Provider, model: Any) -> bool:  # noqa: ANN401 - any provider's class
    if row.holds is not None:
        place, held = row.holds
        bases = type(getattr(model, place, None)).__mro__
        if not any(base.__name__ == held for base in bases):
            return False
    return row.only_if is None or row.only_if(model)
