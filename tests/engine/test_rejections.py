"""Which parameter a provider does not take, and for whom that is remembered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from snne_guard.engine.options import option_key
from snne_guard.engine.rejections import (
    Rejections,
    named_parameter,
    run_steps,
    without_rejected,
)
from snne_guard.engine.retrying import status_of

ALL = frozenset({"temperature", "logprobs", "n"})


class ProviderError(Exception):
    """What a provider's client raises; takes any attributes."""

    def __init__(self, message: str = "made up", **attributes: Any) -> None:
        super().__init__(message)
        self.__dict__.update(attributes)


@dataclass(frozen=True)
class Asked:
    """A request: what the guard added to it, and what is said in it."""

    optional: frozenset[str] = ALL
    texts: Sequence[str] = ()


def refused(message: str, status: int = 400, **attributes: Any) -> ProviderError:
    return ProviderError(message, status_code=status, **attributes)


def body(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


FASTAPI = {"detail": [{"loc": ["body", "logprobs"], "type": "extra", "msg": "extra"}]}
ECHO = {
    "detail": [
        {
            "loc": ["body", "stop"],
            "msg": "too many",
            "input": {"temperature": 1, "n": 4},
        }
    ]
}
ONLY_1 = "'temperature' does not support 0.7. Only the default (1) is supported. See n."
LONG = "the temperature of the sea at n o\u2019clock is fifteen degrees"


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        # By name: of the field, in the text, by the client, in the body.
        (refused("made up", param="n"), "n"),
        (refused("made up", param="body.n"), "n"),
        (refused(ONLY_1), "temperature"),
        (ProviderError("no n at temperature 1", code=400, param="n"), "n"),
        (TypeError("create() got an unexpected keyword argument 'n'"), "n"),
        (NotImplementedError("logprobs are not supported"), "logprobs"),
        (refused("Unprocessable", 422, body=FASTAPI), "logprobs"),
        (refused("x", body=body("logprobs is not supported")), "logprobs"),
        (refused("You are not allowed to request logprobs from it", 403), "logprobs"),
        (refused("No endpoints found that support logprobs", 404), "logprobs"),
        (refused("temperature: internal error", 500), "temperature"),
        # What only the rest of the body names, or a quotation.
        (refused("x n temperature", body=ECHO), None),
        (refused("x", body=body(f"cannot parse '{LONG}'")), None),
        (refused(f'flagged: "{LONG}"'), None),
        # No name at all.
        (refused("no such value", param="include[1]"), None),
        (refused("maximum context length exceeded"), None),
        (refused(repr({"message": "long\n\nsee"})), None),
        # No rejection of what is asked for.
        (refused("n", 401, param="n"), None),
        (refused("slow down, n", 429), None),
        (refused("n", 503, param="n"), None),
        (TypeError("n is not iterable"), None),
    ],
)
def test_the_parameter_that_is_not_taken(
    error: BaseException, parameter: str | None
) -> None:
    assert named_parameter(error, Asked()) == parameter
    assert named_parameter(error, Asked(optional=frozenset())) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("What is the temperature of n?", "blocked: What is the temperature of n?"),
        ("What is the temperature of n?", "blocked near 'the temperature of n'"),
        ("temperature?", "this was flagged: temperature?"),
        ("Say logprobs\nand temperature now", "in Say logprobs\\nand temperature now"),
        ("is n prime", "Is it so that is n prime is asked"),
    ],
)
def test_what_an_error_quotes_of_the_request_names_nothing(
    text: str, message: str
) -> None:
    assert named_parameter(refused(message), Asked(texts=["Be brief.", text])) is None
    told = refused(f"{message}. n is not supported")
    assert named_parameter(told, Asked(texts=[text])) == "n"


# -- What is sent again, and what is learnt of it --------------------------------------


def send_all(
    takes: Sequence[BaseException | str], memory: Rejections, key: object = "k"
) -> tuple[list[frozenset[str]], object]:
    """Return what each request was made of, and the last result or error."""
    sent: list[frozenset[str]] = []
    script = iter(takes)

    def make(*, left_out: frozenset[str]) -> Asked:
        return Asked(optional=ALL - left_out)

    def send(request: Asked) -> str:
        sent.append(request.optional)
        said = next(script)
        if isinstance(said, BaseException):
            raise said
        return said

    try:
        (_, result), _ = run_steps(without_rejected(make, memory, key), send)
    except ProviderError as error:
        return sent, error
    return sent, result


def test_what_is_named_is_left_out_and_remembered() -> None:
    memory = Rejections()
    sent, result = send_all([refused("n is unknown"), "ok"], memory)
    assert (sent, result) == ([ALL, ALL - {"n"}], "ok")
    assert send_all(["ok"], memory)[0] == [ALL - {"n"}]
    assert send_all(["ok"], memory, "another key")[0] == [ALL]


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_a_rejection_without_a_name_is_sent_once_more_and_teaches_nothing(
    status: int,
) -> None:
    memory = Rejections()
    stray = refused("Error while downloading the file", status)
    sent, result = send_all([stray, "ok"], memory)
    assert (sent, result) == ([ALL, ALL - {"logprobs"}], "ok")
    assert memory.known("k") == frozenset()
    sent, result = send_all([stray, stray], memory)
    assert (len(sent), result) == (2, stray)


@pytest.mark.parametrize("status", [401, 408, 429, 500, 503])
def test_other_errors_are_what_they_are(status: int) -> None:
    error = refused("made up", status)
    assert send_all([error], Rejections()) == ([ALL], error)


def test_what_fails_in_the_end_teaches_nothing() -> None:
    memory = Rejections()
    send_all([refused("n is unknown"), refused("no", 401)], memory)
    assert memory.known("k") == frozenset()


def test_it_is_forgotten_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, now = Rejections(), 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    memory.learn("k", {"n"})
    now += 599
    assert memory.known("k") == {"n"}
    now += 2
    assert memory.known("k") == frozenset()


def test_at_most_a_thousand_are_kept_the_latest() -> None:
    memory = Rejections()
    for key in range(1_500):
        memory.learn(key, {"n"})
        memory.learn("used again and again", {"logprobs"})
    kept = [key for key in range(1_500) if memory.known(key)]
    assert kept == [*range(501, 1_500)]
    assert memory.known("used again and again") == {"logprobs"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"top_p": 0.1}, {"top_p": 0.9}, True),
        ({"top_p": 0.1}, {"temperature": 0.9}, False),
        ({"stop": None}, {}, True),
        ({"extra_body": {"top_k": 1}}, {"extra_body": {"min_p": 1}}, False),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}, False),
        ({"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}}, False),
        ({"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}, False),
        ({"model": "o3"}, {"model": "gpt-4.1"}, False),
        ({"extra_body": {"models": ["a"]}}, {"extra_body": {"models": ["b"]}}, False),
        ({"provider": {"only": ["a"]}}, {"provider": {"only": ["b"]}}, False),
        ({"verbosity": "low"}, {"verbosity": "high"}, False),
        ({"user": "one"}, {"user": "other"}, True),
        ({"tools": [{"name": "f"}]}, {"tools": [{"name": "g"}]}, True),
    ],
)
def test_the_key_is_of_what_may_change_the_options_that_a_model_takes(
    one: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    assert (option_key([one]) == option_key([other])) is same


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
