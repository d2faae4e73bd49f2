"""Answers that fail, retries, and what comes out of a withheld answer.

What becomes of odd replies is the same as for LangChain, whose tests hold it.
"""

from __future__ import annotations

import logging
import pickle
from typing import Any

import openai
import pytest

from snne_guard import SamplingError, UncertainAnswerError
from tests.openai.guarded import guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import APART, Answer, split


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=401), openai.AuthenticationError),
        (Answer(body={"error": {"code": "x"}}), SamplingError),
        (Answer(body={"id": "x", "choices": []}), SamplingError),
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
