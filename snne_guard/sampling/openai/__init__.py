"""Draw from the OpenAI API, and from servers that speak its protocol."""

from snne_guard.sampling.openai.api import Api, ApiObject, ApiRequest, has_side_effects
from snne_guard.sampling.openai.chat import ChatApi
from snne_guard.sampling.openai.door import (
    OpenAIDoor,
    StreamedAnswer,
    capabilities_of,
    reusable_options,
)
from snne_guard.sampling.openai.responses import ResponsesApi

__all__ = [
    "Api",
    "ApiObject",
    "ApiRequest",
    "ChatApi",
    "OpenAIDoor",
    "ResponsesApi",
    "StreamedAnswer",
    "capabilities_of",
    "has_side_effects",
    "reusable_options",
]
