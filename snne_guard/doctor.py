"""Whether a model's samples can be trusted, found out by asking it.

A guard measures how far replies differ. Where a server ignores the temperature, answers
from a cache or draws with one seed, they never differ, and everything looks certain.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from snne_guard.cost import Cost
from snne_guard.engine import Draw, Response, Sender
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.similarity import content_f1
from snne_guard.types import Reply

Status = Literal["works", "ignored", "rejected", "missing", "broken"]

_REPLIES = 4
_CHOICES = 3

_PROMPT = (
    "Invent a village that does not exist. Say its name and one odd thing that its "
    "people do, in one sentence. This is request {number}."
)
_CAPITAL = "What is the capital of France? Answer in one word."
_ANSWERS = ("Paris", "Madrid")  # right and wrong

_EASY = (
    "What is the capital of France?",
    "How many days are there in a week?",
    "Who wrote Romeo and Juliet?",
    "What is 2 + 3?",
    "Which planet is closest to the sun?",
)
_ALIKE = 0.5
"""Similarity above which two answers say the same."""

_ONE_BY_ONE = "each sample takes a request of its own"


@dataclass(frozen=True, slots=True)
class Finding:
    """How a model behaves in one aspect, such as ``"variation"`` or ``"n"``.

    ``fix`` is what to do before samples can be trusted; it is empty where they can.
    """

    aspect: str
    status: Status
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings about a model, which is None where its replies name none."""

    model: str | None
    findings: tuple[Finding, ...]
    cost: Cost

    @property
    def ok(self) -> bool:
        """Whether samples of the model can be trusted."""
        return not self.fix

    @property
    def fix(self) -> str:
        """What to do before they can; empty if they can."""
        return next((finding.fix for finding in self.findings if finding.fix), "")


def examine(sender: Callable[[str], Sender], *, parameters: Collection[str]) -> Report:
    """Ask a model for replies that must vary; say whether its samples can be trusted.

    Four requests for one reply and one for three ask for something made up, so that
    equal replies do not come by chance. Two are self-checks, of a right answer and of a
    wrong one. Where the model does not answer at all, its own error is raised.
    """
    started = time.monotonic()
    asked = sender(_PROMPT.format(number=secrets.randbelow(10**6)))
    about = sender(_CAPITAL)
    one = Draw(role="sample", temperature=1.0, logprobs="logprobs" in parameters)
    singles = [asked.send(one) for _ in range(_REPLIES)]
    several = replace(one, n=_CHOICES)
    together = _tried(asked, several) if "n" in parameters else None
    prompt = SelfCheck().prompt
    self_checks = [
        _tried(about, Draw(role="self_check", turns=(answer, prompt), logprobs=True))
        for answer in _ANSWERS
    ]
    tried = [*singles, *([together] if together else []), *self_checks]
    responses = [each for each in tried if isinstance(each, Response)]
    drawn = [*singles, together] if isinstance(together, Response) else singles
    samples = [sample for response in drawn for sample in response.replies]
    variation = _variation([response.replies[0] for response in singles])
    unanswered = Cost(
        attempts=len(tried) - len(responses), seconds=time.monotonic() - started
    )
    return Report(
        model=next((sample.model for sample in samples if sample.model), None),
        findings=(
            variation,
            _temperature(singles),
            _n(together, vary=not variation.fix),
            _logprobs(samples, offered="logprobs" in parameters),
            _options(responses),
            _self_check(self_checks),
        ),
        cost=sum((response.cost for response in responses), unanswered),
    )


def compare_words(
    sender: Callable[[str], Sender], other: Callable[[str], Sender], *, name: str
) -> tuple[Finding, Cost]:
    """Ask two models easy questions; say whether their words compare, and the cost."""
    answer, cost, alike = Draw(role="answer"), Cost(), 0
    aspect = f"other model {name}"
    for question in _EASY:
        texts: list[str] = []
        for model in (sender, other):
            response = _tried(model(question), answer)
            if isinstance(response, Exception):
                message = f"no answer to an easy question: {type(response).__name__}"
                return Finding(aspect, "broken", message), cost
            texts.append(response.replies[0].text)
            cost += response.cost
        alike += content_f1(texts, question=question)[0, 1] > _ALIKE
    message = f"its answers to {alike} of {len(_EASY)} easy questions compare"
    if alike == len(_EASY):
        return Finding(aspect, "works", message), cost
    why = "elsewhere other words would look like doubt: ask both for short answers"
    return Finding(aspect, "broken", f"{message}; {why}"), cost


def _tried(sender: Sender, draw: Draw) -> Response | Exception:
    """Return the response to a request, or its error: a failure is a finding."""
    try:
        return sender.send(draw)
    except Exception as error:  # noqa: BLE001 - as said above
        return error


def _variation(samples: Sequence[Reply]) -> Finding:
    different = len({sample.text for sample in samples})
    total = f"{len(samples)} separate replies at temperature 1"
    if all(sample.truncated or not sample.text.strip() for sample in samples):
        fix = "give the model more tokens, or find out why it says nothing"
        return Finding("variation", "broken", f"{total} are empty or cut off", fix)
    if different > 1:
        message = f"{total}, {different} of them different"
        return Finding("variation", "works", message)
    fix = (
        "have the server draw at the temperature that it is asked for, without a fixed "
        'seed and without a cache (transformers serve: "do_sample": true in the '
        "model's generation_config.json)"
    )
    return Finding("variation", "ignored", f"{total} are identical", fix)


def _temperature(responses: Sequence[Response]) -> Finding:
    if all(response.temperature_set for response in responses):
        return Finding("temperature", "works", "1 was accepted")
    message = "it cannot be set, so samples are drawn at the model's own"
    return Finding("temperature", "rejected", message)


def _options(responses: Sequence[Response]) -> Finding:
    refused = sorted(frozenset[str]().union(*(each.rejected for each in responses)))
    if not refused:
        return Finding("options", "works", "none that the guard adds is rejected")
    names = ", ".join(refused)
    return Finding("options", "rejected", f"{names}: requests go without")


def _n(response: Response | Exception | None, *, vary: bool) -> Finding:
    if response is None:
        return Finding("n", "missing", f"not offered: {_ONE_BY_ONE}")
    if isinstance(response, Exception):
        return Finding("n", "rejected", f"{type(response).__name__}: {_ONE_BY_ONE}")
    texts = [sample.text for sample in response.replies]
    message = f"asked for {_CHOICES} replies in one request, got {len(texts)}"
    if len(texts) < _CHOICES:
        return Finding("n", "ignored", f"{message}: {_ONE_BY_ONE}")
    if len(set(texts)) == 1 and vary:
        fix = "use a model class that asks for samples one by one"
        return Finding("n", "broken", f"{message}, all identical", fix)
    return Finding("n", "works", message)


def _logprobs(samples: Sequence[Reply], *, offered: bool) -> Finding:
    known = [each.token_logprobs for each in samples if each.token_logprobs]
    if len(known) < len(samples):
        why = "asked for, and left out" if offered else "not offered"
        message = f"{why}: the guard takes SNNE in place of WSNNE"
        return Finding("logprobs", "missing", message)
    means = [sum(each) / len(each) for each in known]
    if max(means) == 0:
        message = "all are 0: they are for greedy decoding, not for drawn tokens"
        return Finding("logprobs", "broken", message)
    message = f"one for each token, {sum(means) / len(means):.2f} nats on average"
    return Finding("logprobs", "works", message)


def _self_check(responses: Sequence[Response | Exception]) -> Finding:
    right, wrong = (
        each.p_correct if isinstance(each, Response) else None for each in responses
    )
    if right is None or wrong is None:
        message = "the model says neither Yes nor No: a self-check would count as 0.5"
        return Finding("self_check", "missing", message)
    message = f"P(Yes) is {right:.2f} for a right answer, {wrong:.2f} for a wrong one"
    if right > UNKNOWN > wrong:
        return Finding("self_check", "works", message)
    if min(right, wrong) > UNKNOWN:
        message = f"{message}: it says Yes to everything"
    return Finding("self_check", "broken", message)
