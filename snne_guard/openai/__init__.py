"""Guard clients of the ``openai`` package."""

from snne_guard.errors import MissingExtraError

try:
    import openai as _openai
except ImportError as error:
    msg = "the openai package"
    raise MissingExtraError(msg, extra="openai") from error

from snne_guard.openai.client import (
    AsyncGuardedOpenAI,
    GuardedOpenAI,
    guard_client,
)
from snne_guard.openai.streams import AsyncGuardedStream, GuardedStream

del _openai

__all__ = [
    "AsyncGuardedOpenAI",
    "AsyncGuardedStream",
    "GuardedOpenAI",
    "GuardedStream",
    "guard_client",
]
