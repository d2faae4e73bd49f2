"""The errors that stand for an answer, as LangChain's own ``ModelError``.

That says that they are not retryable: LangChain's middleware would ask again otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core import exceptions

from snne_guard import errors

__all__ = ["SamplingError", "UncertainAnswerError", "as_model_error"]

if TYPE_CHECKING:
    from langchain_core.exceptions import ModelError as _ModelError
else:  # it came with langchain-core 1.7
    _ModelError = getattr(exceptions, "ModelError", exceptions.LangChainException)


class UncertainAnswerError(errors.UncertainAnswerError, _ModelError):
    """The answer was withheld."""


class SamplingError(errors.SamplingError, _ModelError):
    """The answer was withheld because it could not be scored."""


def as_model_error(error: BaseException) -> BaseException:
    """Return the engine's error as a ``ModelError``, any other as it is."""
    kinds = {kind.__base__: kind for kind in (UncertainAnswerError, SamplingError)}
    kind: Any = kinds.get(type(error))
    if kind is None:
        return error
    fields = {name: value for name, value in vars(error).items() if name[0] != "_"}
    made: BaseException = kind(*error.args, **fields)
    return made
