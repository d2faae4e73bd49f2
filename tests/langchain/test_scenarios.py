"""What a provider may do, a row each, and what a guard makes of it.

Every row is a guard with ``n=5``, ``threshold=0.4`` and ``on_uncertain="refuse"`` on a
real ChatOpenAI. Where a row says nothing else, the provider answers "Paris" five
times and well: one request for the answer, one for four samples, and WSNNE accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import openai
import pytest

from snne_guard import GuardTimeoutError, SNNEGuard
from tests.langchain.support import REFUSAL, WHOLE, ask, chat_openai, metadata_of
from tests.support.openai_server import (
    Answer,
    Asked,
    Scripted,
    Server,
    calling,
    rejecting,
)

PARIS = Answer()
NOW = {"retry-after": "0"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the provider does, and what comes of it.

    Attributes:
        answer: What a request for the answer brings; several in turn.
        samples: What a request for samples brings; several in turn, the last for ever.
        alone: Whether the provider refuses ``n``, so that samples come one by one.
        script: In place of all three.
        says: What is delivered: a text, or an exception that is raised.
        decision: Of the guard, None where an exception is raised.
        reasons: Of the guard, in any order.
        n_used: Replies that were compared.
        method: What scored them, None where nothing did.
        calls: Requests that were answered, and those that were sent.
        lower_bound: Whether the cost is one.
        model: Options of the ChatOpenAI.
        bound: What is bound to it.
        options: Of the guard.
    """

    answer: Answer | Sequence[Answer] = PARIS
    samples: Answer | Sequence[Answer] = PARIS
    alone: bool = False
    script: Scripted | None = None
    says: str | type[BaseException] = "Paris"
    decision: str | None = "accept"
    reasons: tuple[str, ...] = ()
    n_used: int = 5
    method: str | None = "wsnne"
    calls: tuple[int, int] = (2, 2)
    lower_bound: bool = False
    model: dict[str, Any] = field(default_factory=dict)
    bound: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def refused(*reasons: str, **fields: Any) -> Row:
    """Return a row in which nothing can be scored, so that the answer is withheld."""
    unscored: dict[str, Any] = {"says": REFUSAL, "decision": "refuse", "method": None}
    return Row(reasons=reasons, **{**unscored, **fields})


def nothing_said(reason: str, answer: Answer) -> Row:
    """Return a row in which the answer does not count, and the samples are."""
    return refused(reason, answer=answer, n_used=4)


def raised(error: type[BaseException], **fields: Any) -> Row:
    return Row(says=error, decision=None, **fields)


def no_sample(*reasons: str, **fields: Any) -> Row:
    """Return a row in which the answer is the only one that counts."""
    return refused(*reasons, "too_few_samples", **{"n_used": 1, **fields})


def alone(sample: Answer, reason: str | None = None, **fields: Any) -> Row:
    """Return a row in which one sample of four, each asked for alone, is odd."""
    odd: dict[str, Any] = {"n_used": 4} if reason else {}
    reasons = (reason,) if reason else ()
    row = {"alone": True, "calls": (5, 6), "reasons": reasons, **odd, **fields}
    return Row(samples=[PARIS, sample, PARIS], **row)


def cut(_: Asked) -> Answer:
    raise ConnectionAbortedError


HTML = Answer(body="<html><title>Gateway</title></html>")
LIMITED = Answer(status=429, headers=NOW)
DOWN = Answer(status=500, headers=NOW)
THOUGHT = "<think>Paris or Lyon?</think>"
IMAGE = {"content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]}
TAGGED = [f"{n}.</think> Your balance is as it was." for n in (10, 22, 35, 47, 51)]
PAYING = calling({"euros": 5}, name="pay")

ROWS: dict[str, Row] = {
    "all is well": Row(),
    "samples differ": Row(
        samples=Answer(texts=["Lyon", "Nice", "Metz", "Brest"]),
        says=REFUSAL,
        decision="refuse",
    ),
    # -- What a reply says
    "an empty answer": nothing_said("answer_unreadable", Answer(texts=[""])),
    "an invisible answer": nothing_said(
        "answer_unreadable", Answer(texts=["\u200b\u3164\ufeff"])
    ),
    "an answer of reasoning alone": nothing_said(
        "answer_unreadable", Answer(texts=[THOUGHT])
    ),
    "an answer that thinks first": Row(
        answer=Answer(texts=[f"{THOUGHT} Paris"], tokens=["x"]),
        says=f"{THOUGHT} Paris",
        reasons=("logprobs_missing",),
        method="snne",
    ),
    "a closing tag inside of answers": Row(
        answer=Answer(texts=TAGGED[:1]),
        samples=Answer(texts=TAGGED[1:]),
        says=REFUSAL,
        decision="refuse",
    ),
    "an answer that the provider filters": nothing_said(
        "answer_refused", Answer(finish="content_filter")
    ),
    "an answer that is a refusal": nothing_said(
        "answer_refused", Answer(message={"content": None, "refusal": "No."})
    ),
    "an answer that is cut off": Row(
        answer=Answer(finish="length"), reasons=("answer_truncated",)
    ),
    "an answer of unknown end": Row(
        answer=Answer(finish="tired"), reasons=("answer_truncated",)
    ),
    "an answer that does not say how it ended": Row(
        answer=Answer(finish=None), reasons=("answer_truncated",)
    ),
    "an answer that calls a tool although none is bound": Row(
        answer=PAYING,
        samples=Answer(texts=["Paris"]),
        says=REFUSAL,
        decision="refuse",
        method="snne",
    ),
    "an answer that is an image": nothing_said(
        "answer_unreadable", Answer(message=IMAGE)
    ),
    "an answer of another model": Row(
        answer=Answer(model="other"), reasons=("mixed_models",)
    ),
    "a sample that is empty": alone(Answer(texts=[""]), "unreadable_samples"),
    "a sample that is cut off": alone(Answer(finish="length"), "truncated_samples"),
    "a sample that the provider filters": alone(
        Answer(finish="content_filter"), "refused_samples"
    ),
    "a sample that calls a tool": alone(PAYING, "tool_call_samples"),
    # -- How many replies
    "n is ignored": Row(samples=Answer(choices=1), calls=(5, 5)),
    "n is rejected": Row(script=rejecting("n", lambda _: PARIS), calls=(5, 6)),
    "fewer choices than asked for": Row(
        samples=[Answer(choices=3), PARIS], calls=(3, 3)
    ),
    "no choice at all": no_sample(
        "samples_failed", samples=Answer(choices=0), calls=(1, 6)
    ),
    # -- Log-probabilities
    "no log-probabilities": Row(
        script=lambda _: Answer(logprobs=False),
        method="snne",
        reasons=("logprobs_missing",),
    ),
    "log-probabilities for the answer alone": Row(
        samples=Answer(logprobs=False), method="snne", reasons=("logprobs_missing",)
    ),
    "log-probabilities are rejected": Row(
        script=rejecting("logprobs", lambda _: PARIS),
        method="snne",
        reasons=("logprobs_missing",),
        calls=(2, 3),
        options={"schedule": "answer_first"},
    ),
    "the same unlikely words again and again": refused(
        "suspect_agreement",
        answer=Answer(texts=["one two three"]),
        samples=Answer(texts=["one two three"], logprob=-9.0),
    ),
    # -- Parameters
    "the temperature is rejected": Row(
        script=rejecting("temperature", lambda _: PARIS),
        reasons=("temperature_unset",),
        calls=(2, 3),
    ),
    "a tool runs at the provider": no_sample(
        "side_effects", bound={"tools": [{"type": "web_search"}]}, calls=(1, 1)
    ),
    # -- What it costs
    "no usage": Row(script=lambda _: Answer(usage=False), lower_bound=True),
    # -- Requests that fail
    "an HTML page for the answer": raised(Exception, answer=HTML),
    "401 for the answer": raised(openai.AuthenticationError, answer=Answer(status=401)),
    "429 once, with Retry-After": Row(samples=[LIMITED, PARIS], calls=(2, 3)),
    "500 once for samples": Row(samples=[DOWN, PARIS], calls=(2, 3)),
    "the connection is cut for the answer": raised(
        openai.APIConnectionError, script=cut, model={"max_retries": 1}
    ),
    # -- Requests that are slow
    "slow samples": no_sample(
        "samples_late",
        samples=Answer(hang=True),
        options={"sample_timeout": 0.3},
        calls=(1, 2),
        lower_bound=True,
    ),
    "a slow answer": raised(
        GuardTimeoutError, answer=Answer(hang=True), options={"timeout": 0.3}
    ),
}


def served(row: Row) -> Scripted:
    if row.script is not None:
        return row.script
    turns = {False: 0, True: 0}

    def script(asked: Asked) -> Answer:
        if row.alone and asked.n > 1:
            error = {"message": "n must be 1", "param": "n"}
            return Answer(status=400, body={"error": error})
        answers = row.samples if asked.is_sample else row.answer
        if isinstance(answers, Answer):
            return answers
        turns[asked.is_sample] += 1
        return answers[min(turns[asked.is_sample], len(answers)) - 1]

    return script


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("way", WHOLE)
def test_what_a_guard_makes_of_it(way: str, name: str) -> None:
    row = ROWS[name]
    with Server(served(row)) as server:
        model = chat_openai(server, **row.model)
        guard = SNNEGuard(
            model.bind(**row.bound) if row.bound else model,
            **{"threshold": 0.4, "on_uncertain": "refuse", **row.options},
        )
        if not isinstance(row.says, str):
            with pytest.raises(row.says):
                ask(guard, way)
            return
        message = ask(guard, way)
    record = metadata_of(message)
    cost = record["cost"]
    found = replace(
        row,
        says=message.text,
        decision=record["decision"],
        reasons=tuple(sorted(record["reasons"])),
        n_used=record["n_used"],
        method=record["method"],
        calls=(cost["calls"], cost["attempts"]),
        lower_bound=cost["lower_bound"],
    )
    assert found == replace(row, reasons=tuple(sorted(row.reasons)))
    assert (record["uncertainty"] is None) is (row.method is None)
