"""The errors of the library: their tree, their texts, their way through pickle."""

from __future__ import annotations

import copy
import pickle

import pytest

from snne_guard import errors
from snne_guard.langchain import errors as langchain_errors

MADE = [
    errors.ConfigurationError("no"),
    errors.InputError("no"),
    errors.MissingExtraError("xllamacpp", extra="demo", command="make demo"),
    errors.ModelCancelledError("by itself"),
    errors.ScoringError("the judge failed"),
    errors.MonitorStoreError("held by another process"),
    errors.SamplingError("few", n_used=1, needed=3, reasons=("samples_failed",)),
    errors.GuardTimeoutError("late", timeout=2.0),
    errors.UncertainAnswerError("held", uncertainty=0.9, threshold=0.4),
    langchain_errors.SamplingError("few", n_used=1, needed=3),
    langchain_errors.GuardTimeoutError("late", timeout=2.0),
    langchain_errors.UncertainAnswerError("held", score=-1.0, assessment_id="a1"),
]


@pytest.mark.parametrize(
    "error", MADE, ids=[f"{type(e).__name__}-{i}" for i, e in enumerate(MADE)]
)
def test_every_error_is_of_our_tree_and_survives_a_copy(error: Exception) -> None:
    assert isinstance(error, errors.SnneGuardError)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_what_is_missing_is_named_with_the_command_that_helps() -> None:
    plain = errors.MissingExtraError("typer", extra="cli")
    assert str(plain) == (
        'typer is not installed. Install it with: pip install "snne-guard[cli]"'
    )
    assert plain.extra == "cli"
    assert isinstance(plain, ImportError)
    told = errors.MissingExtraError("the model", extra="demo", command="make demo")
    assert str(told) == "the model is not installed. Install it with: make demo"


def test_errors_are_what_callers_expect_them_to_be() -> None:
    assert issubclass(errors.ConfigurationError, ValueError)
    assert issubclass(errors.InputError, ValueError)
    assert issubclass(errors.GuardTimeoutError, TimeoutError)
    assert not errors.UncertainAnswerError.is_retryable
    assert errors.GuardTimeoutError.is_retryable
