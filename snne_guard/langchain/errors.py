"""The errors of a guarded call that are also langchain-core's ``ModelError``.

So ``with_fallbacks`` and ``with_retry`` treat them as a provider's own errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core import exceptions

from snne_guard import errors

__all__ = [
    "GuardTimeoutError",
    "SamplingError",
    "UncertainAnswerError",
    "as_model_error",
]

if TYPE_CHECKING:
    from langchain_core.exceptions import ModelError as _ModelError

    _RefusalError = _ModelError
else:
    # ModelError came with langchain-core 1.7, ModelRefusalError with 1.7.5.
    _ModelError = getattr(exceptions, "ModelError", exceptions.LangChainException)
    _RefusalError = getattr(exceptions, "ModelRefusalError", _ModelError)


class UncertainAnswerError(errors.UncertainAnswerError, _RefusalError):
    """The answer was withheld; also a ``ModelRefusalError`` where there is one."""

    is_retryable = False


class SamplingError(errors.SamplingError, _ModelError):
    """Too few members of the response set could be scored."""

    is_retryable = False


class GuardTimeoutError(errors.GuardTimeoutError, _ModelError):
    """The answer did not arrive within the ``timeout`` of the guarded call."""

    is_retryable = True


_KINDS: dict[type[BaseException], type[BaseException]] = {
    errors.GuardTimeoutError: GuardTimeoutError,
    errors.SamplingError: SamplingError,
    errors.UncertainAnswerError: UncertainAnswerError,
}


def as_model_error(error: BaseException) -> BaseException:
    """Return the engine's error as a ``ModelError``, any other as it is."""
    kind = _KINDS.get(type(error))
    if kind is None:
        return error
    fields = {name: value for name, value in vars(error).items() if name[0] != "_"}
    return kind(*error.args, **fields)
