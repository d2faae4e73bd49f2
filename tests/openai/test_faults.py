"""What the guard makes of what providers do, one row each.

How the text of a reply is read is the same as for LangChain, whose tests hold it.
"""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass
from typing import Any

import openai
import pytest

from snne_guard import SamplingError, UncertainAnswerError
from tests.openai.guarded import guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import (
    APART,
    Answer,
    Scripted,
    always,
    rejecting,
    split,
)

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A provider's behaviour, and what comes of it with five members."""

    script: Any
    decision: str = "accept"
    reasons: tuple[str, ...] = ()
    n_used: int = 5
    attempts: int | None = None
    lower_bound: bool = False


def odd(sample: Answer, reason: str) -> Fault:
    """Return a fault in which one sample of four, each asked for alone, is odd."""
    drawn = 0

    def script(asked: Any) -> Answer:
        nonlocal drawn
        if not asked.is_sample:
            return Answer()
        if asked.n > 1:
            return Answer(status=400, body={"error": {"message": "no", "param": "n"}})
        drawn += 1
        return sample if drawn % 4 == 0 else Answer()

    return Fault(script=script, reasons=(reason,), n_used=4)


def beside(**fields: Any) -> Scripted:
    """Answer well, and give samples that are not as usual."""
    return lambda asked: Answer(**fields) if asked.is_sample else Answer()


FAULTS: dict[str, Fault] = {
    "all is well": Fault(script=always(), attempts=2),
    "n is ignored": Fault(script=always(choices=1), attempts=5),
    "n is rejected": Fault(script=rejecting("n", always())),
    "n is rejected without a word": Fault(script=rejecting("n", always(), named=False)),
    "one reply too many": Fault(script=always(choices=9)),
    "no log-probabilities": Fault(
        script=always(logprobs=False), reasons=("logprobs_missing",)
    ),
    "log-probabilities are rejected": Fault(
        script=rejecting("logprobs", always()), reasons=("logprobs_missing",)
    ),
    "the temperature is rejected": Fault(
        script=rejecting("temperature", always()), reasons=("temperature_unset",)
    ),
    "usage is missing": Fault(script=always(usage=False), lower_bound=True),
    "samples of another model": Fault(
        script=beside(model="other"), reasons=("mixed_models",)
    ),
    "a sample is empty": odd(Answer(texts=[""]), "unreadable_samples"),
    "a sample is cut off": odd(Answer(finish="length"), "truncated_samples"),
    "a sample does not say how it ended": odd(Answer(finish=None), "truncated_samples"),
    "a sample is filtered": odd(Answer(finish="content_filter"), "refused_samples"),
    "a sample refuses": odd(
        Answer(message={"content": None, "refusal": "No."}), "refused_samples"
    ),
    "a sample calls a tool": odd(
        Answer(message={"tool_calls": [CALL]}), "tool_call_samples"
    ),
    "a sample fails": odd(Answer(status=403), "samples_failed"),
    "a sample is no JSON": odd(Answer(body="{"), "samples_failed"),
    "a sample has no choices": odd(Answer(choices=0), "samples_failed"),
    "samples hold an error": Fault(
        script=lambda asked: Answer(
            body={"error": {"code": 500}} if asked.is_sample else None
        ),
        decision="refuse",
        reasons=("samples_failed", "too_few_samples"),
        n_used=1,
    ),
    "all samples fail": Fault(
        script=beside(status=400),
        decision="refuse",
        reasons=("samples_failed", "too_few_samples"),
        n_used=1,
    ),
    "the answer is empty": Fault(
        script=split("", *APART),
        decision="refuse",
        reasons=("answer_unreadable",),
    ),
    "the answer is a refusal": Fault(
        script=split(Answer(message={"content": None, "refusal": "No."}), "Paris"),
        decision="refuse",
        reasons=("answer_refused",),
    ),
    "the answer is cut off": Fault(
        script=split(Answer(finish=None), "Paris"),
        reasons=("answer_truncated",),
    ),
    "the answer is heard": Fault(
        script=split(Answer(message={"audio": {"id": "a", "data": "AA"}}), "Paris"),
        decision="refuse",
        reasons=("answer_unreadable",),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FAULTS)
def test_what_the_guard_makes_of_it(name: str, way: str) -> None:
    fault = FAULTS[name]
    refusing: Any = {"threshold": 0.4, "on_uncertain": "refuse"}
    with guarded(fault.script, way, **refusing) as (server, call):
        record = call().snne_guard
        sent = len(server.requests)
    assert record["decision"] == fault.decision
    assert set(record["reasons"]) == set(fault.reasons)
    assert record["n_used"] == fault.n_used
    assert record["cost"]["lower_bound"] is fault.lower_bound
    if fault.attempts is not None:
        assert record["cost"]["attempts"] == sent == fault.attempts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=400), openai.BadRequestError),
        (Answer(status=401), openai.AuthenticationError),
        (Answer(body={"choices": []}), SamplingError),
        (Answer(body={"error": {"code": "x"}}), SamplingError),
    ],
)
def test_an_answer_that_fails_raises_as_it_is(
    answer: Answer, error: type[Exception], way: str
) -> None:
    with guarded(split(answer, "Paris"), way) as (_, call), pytest.raises(error):
        call()


@pytest.mark.parametrize("way", WAYS)
def test_transient_faults_are_retried_in_one_layer(way: str) -> None:
    failed: set[bool] = set()

    def script(asked: Any) -> Answer:
        if asked.is_sample in failed:
            return Answer()
        failed.add(asked.is_sample)
        headers = {"retry-after": "0", "retry-after-ms": "1"}
        return Answer(status=503, headers=headers)

    for retries in (0, 1):
        failed.clear()
        options: Any = {"max_retries": retries}
        with guarded(script, way, client_options=options, n=2) as (server, call):
            assert call().snne_guard["n_used"] == 2
            assert len(server.requests) == 4


@pytest.mark.parametrize("way", WAYS)
def test_what_was_learnt_is_not_asked_again(way: str) -> None:
    script = rejecting("temperature", rejecting("logprobs", always()))
    with guarded(script, way) as (server, call):
        call()
        server.requests.clear()
        record = call().snne_guard
        assert len(server.requests) == 2
        call(model="other")
        assert len(server.requests) > 4  # what another model takes is not known
    assert record["reasons"] == ["temperature_unset", "no_threshold"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["chat.completions.create", "responses.create"])
def test_no_text_of_a_withheld_answer_comes_out(
    path: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    withheld = "Zanzibar"
    caplog.set_level(logging.DEBUG, "snne_guard")
    script = split(withheld, *APART)
    options: Any = {"threshold": 0.4, "on_uncertain": "refuse"}
    with guarded(script, way, **options) as (_, call):
        answer = call(path)
        parts, _stream = call.stream(path)
    told = [answer.to_json(), repr(answer), *(part.to_json() for part in parts)]
    options["on_uncertain"] = "raise"
    with guarded(script, way, **options) as (_, call):
        for stream in (False, True):
            with pytest.raises(UncertainAnswerError) as caught:
                call(path, stream=stream)
            told += [repr(caught.value), str(pickle.dumps(caught.value))]
    assert not any(withheld in each for each in told)
    assert withheld not in caplog.text
