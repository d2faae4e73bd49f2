"""Which parameter a provider does not take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from snne_guard.engine.rejections import rejected_parameter
from snne_guard.engine.retrying import status_of

ALL = ("temperature", "logprobs", "n")


class ProviderError(Exception):
    """What a provider's client raises; takes any attributes."""

    def __init__(self, message: str = "made up", **attributes: Any) -> None:
        super().__init__(message)
        self.__dict__.update(attributes)


NAMED = {"detail": [{"loc": ["body", "logprobs"], "type": "extra"}]}
QUOTED = "n must be 1. {'input': {'temperature': 1.0, 'logprobs': True, 'n': 4}}"
ONLY_1 = "'temperature' does not support 0.7. Only the default (1) is supported. See n."


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        # By name: of the field, in the text, by the client, in the body.
        (ProviderError(status_code=400, param="n"), "n"),
        (ProviderError(status_code=400, param="body.n"), "n"),
        (ProviderError(ONLY_1, status_code=400), "temperature"),
        (ProviderError(QUOTED, status_code=400), "n"),
        (ProviderError("no n at temperature 1", code=400, param="n"), "n"),
        (TypeError("create() got an unexpected keyword argument 'n'"), "n"),
        (NotImplementedError("logprobs are not supported"), "logprobs"),
        (ProviderError("Unprocessable", status_code=422, body=NAMED), "logprobs"),
        # Without a name: the log-probabilities, which only the guard wants.
        (ProviderError("no such value", code=400, param="include[1]"), "logprobs"),
        (ProviderError("maximum context length exceeded", code=400), "logprobs"),
        (ProviderError(repr({"message": "long\n\nsee"}), code=400), "logprobs"),
        # No rejection of what is asked for.
        (ProviderError("n", status_code=404, param="n"), None),
        (TypeError("n is not iterable"), None),
    ],
)
def test_the_parameter_that_is_not_taken(
    error: BaseException, parameter: str | None
) -> None:
    assert rejected_parameter(error, ["temperature", "logprobs", "n"]) == parameter
    assert rejected_parameter(error, []) is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProviderError(status=503), 503),
        (ProviderError(response=SimpleNamespace(status_code=422)), 422),
        (ProviderError(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), 400),
        (ProviderError(code="invalid_request_error", status_code=400), 400),
        (ValueError(), None),
    ],
)
def test_the_status_of_an_error_or_its_cause(
    error: BaseException, status: int | None
) -> None:
    wrapped = ValueError("wrapped")
    wrapped.__cause__ = error
    assert status_of(error) == status_of(wrapped) == status
