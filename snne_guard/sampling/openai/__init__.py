"""Draw from the OpenAI API, and from servers that speak its protocol."""

from snne_guard.sampling.openai.apis import (
    Api,
    ApiObject,
    ChatApi,
    ResponsesApi,
    keep_first_choice,
)
from snne_guard.sampling.openai.request import ApiRequest, reusable_options
from snne_guard.sampling.openai.sender import OpenAISender

__all__ = [
    "Api",
    "ApiObject",
    "ApiRequest",
    "ChatApi",
    "OpenAISender",
    "ResponsesApi",
    "keep_first_choice",
    "reusable_options",
]
