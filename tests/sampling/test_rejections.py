"""Which parameter a provider does not take."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from snne_guard.sampling.retrying import status_of
from snne_guard.sampling.steps import rejected_parameter

ALL = ("temperature", "logprobs", "n")


class ProviderError(Exception):
    """What a provider's client raises; takes any attributes."""

    def __init__(self, message: str = "made up", **attributes: Any) -> None:
        super().__init__(message)
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        # By name.
        (ProviderError(status_code=400, param="n"), "n"),
        (ProviderError(status_code=400, param="body.n"), "n"),
        (ProviderError(status_code=422, param="temperature"), "temperature"),
        (
            ProviderError("no logprobs", status_code=400, param="top_logprobs"),
            "logprobs",
        ),
        (
            ProviderError("no such value", status_code=400, param="include[1]"),
            "logprobs",
        ),
        # Without a name: the log-probabilities, which only the guard wants.
        (ProviderError("no", status_code=400, param=""), "logprobs"),
        (ProviderError("n", status_code=404, param="n"), None),
        # By the client.
        (TypeError("create() got an unexpected keyword argument 'n'"), "n"),
        (NotImplementedError("logprobs are not supported"), "logprobs"),
        # By its text.
        (ProviderError("n must be 1", status_code=400), "n"),
        (ProviderError("The Number of Completions is limited", code=400), "n"),
        (ProviderError("multiple candidates are not enabled", code=400), "n"),
        (ProviderError("maximum context length exceeded", code=400), "logprobs"),
        (ProviderError(repr({"message": "long\n\nsee"}), code=400), "logprobs"),
        (ProviderError("This model has no log probabilities", code=400), "logprobs"),
        (
            ProviderError(
                "Unsupported value: 'temperature' does not support 0.7 with this "
                "model. Only the default (1) value is supported. See n.",
                status_code=400,
            ),
            "temperature",
        ),
        # By its body.
        (
            ProviderError(
                "Unprocessable",
                status_code=422,
                body={"detail": [{"loc": ["body", "logprobs"], "type": "extra"}]},
            ),
            "logprobs",
        ),
    ],
)
def test_the_parameter_that_is_not_taken(
    error: BaseException, parameter: str | None
) -> None:
    assert rejected_parameter(error, ALL) == parameter


def test_only_candidates_are_named() -> None:
    error = ProviderError("neither n nor temperature", status_code=400)
    assert rejected_parameter(error, ["temperature"]) == "temperature"
    assert rejected_parameter(error, ["seed"]) is None
    assert rejected_parameter(error, []) is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProviderError(status_code=400), 400),
        (ProviderError(code=429), 429),
        (ProviderError(status=503), 503),
        (ProviderError(response=SimpleNamespace(status_code=422)), 422),
        (ProviderError(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), 400),
        (ProviderError(code="invalid_request_error", status_code=400), 400),
        (asyncio.CancelledError(), None),
    ],
)
def test_the_status_of_an_error(error: BaseException, status: int | None) -> None:
    assert status_of(error) == status


def test_the_status_of_the_cause_counts() -> None:
    error = ValueError("wrapped")
    error.__cause__ = ProviderError("no n", status_code=400)
    assert status_of(error) == 400
    assert rejected_parameter(error, ["logprobs"]) == "logprobs"
