"""The options of a guard that no framework has a part in, with their defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, TypedDict

from snne_guard.assess.judge import ToolRule
from snne_guard.assess.observe import observers_of
from snne_guard.assess.stopping import StopRule
from snne_guard.decision import Calibration, Monitor, Threshold
from snne_guard.decision.limits import Limit
from snne_guard.errors import ConfigurationError
from snne_guard.sampling import Breaker, Budget, Prices
from snne_guard.sampling.breaker import BREAKER
from snne_guard.types import (
    Assessment,
    Method,
    Observer,
    OnError,
    OnUncertain,
    Schedule,
    Similarity,
)

__all__ = ["DEFAULTS", "PAPER", "GuardSettings", "complete"]


class GuardSettings(TypedDict, total=False):
    """What a guard takes besides whom it asks; all of it may be left out.

    Attributes:
        n: Members of the response set, at least 2; 5.
        include_answer: Whether the answer is one of them; else ``n`` samples are drawn
            besides it.
        temperature: Sampling temperature of the samples; 1.
        method: A name in ``METHODS`` or ``READINGS``, a method of your own, or
            ``"auto"``: WSNNE where the provider gives log-probabilities, else SNNE,
            settled once.
        similarity: What compares the answers: a name in ``SIMILARITIES``, ``"nli"``,
            ``"nli:MODEL"``, ``"embedding:MODEL"``, a callable of your own, or None for
            the method's default (``"content_f1"`` for SNNE and WSNNE, of which 0.7
            of the weight then lies on the delivered answer).
        tau: Temperature of the similarity's softmax, above 0; None for 1.
        threshold: Largest ``u`` that is accepted, in [0, 1]; a ``Threshold``; a pair
            ``(accept, refuse)``; or None, which measures only.
        calibration: What ``snne-guard calibrate`` made, or the path of its file, in
            place of a threshold: the guard must have its settings, which
            ``from_calibration`` takes over.
        allow_mismatch: Whether settings may differ from those of the calibration; then
            nothing is certified, and every assessment says so.
        prompt_version: What you call the prompt, to be compared with what it was called
            when the calibration was made.
        on_uncertain: What an answer that is not accepted leads to: the decision
            ``"flag"``, ``"refuse"`` or ``"fallback"``, an ``UncertainAnswerError``
            (``"raise"``), or a callable that gets the ``Assessment`` and returns one
            of these words.
        on_error: What happens where fewer than ``min_samples`` members can be scored:
            ``"uncertain"``, ``"accept"`` or ``"raise"``.
        tool_calls: ``"skip"`` leaves an answer that calls tools without a score,
            ``"score"`` compares the calls field by field, a ``Policy`` does so and
            decides by a threshold of its own; or a callable that says of the answer,
            a ``Sample``, which of these holds.
        min_samples: Members that a scored set must have, the answer included; None for
            ``max(2, ceil(n / 2))``.
        schedule: ``"concurrent"`` draws samples beside the answer, ``"answer_first"``
            after it. None: after it where there are tools.
        rounds: Members of the set after each round of samples, rising to ``n``.
        stopping: Whether a round was enough: ``"certificate"``, a ``CalibratedStop``,
            a callable, or None.
        timeout: Seconds for the whole call.
        sample_timeout: Seconds after which what has arrived is scored.
        sample_max_tokens: Token limit of a sample.
        max_concurrency: Requests in flight for this guard, all calls together.
        max_attempts: Requests sent for one sample before it counts as failed; 4.
        sample_rate: Share of calls that are sampled at all; 1.
        sample_when: Says of a call's messages, as the API takes them, whether samples
            are worth their cost; one that fails skips nothing.
        question: Says of a call's messages what the user asks in them, for
            similarities that use it. None: all of the user's last message.
        prices: What the model's tokens cost, so that ``Cost.money`` is known.
        budget: What guarded calls may spend; samples that would go over are not drawn.
        breaker: When the provider counts as failing, so that samples are shed before
            answers; None for never.
        monitor: Watches the calibration in use: picks answers for audits, and says
            when the threshold no longer fits. None for nobody.
        observers: Objects with any of ``on_sample_start``, ``on_sample_end`` and
            ``on_assessment``.
    """

    n: int
    include_answer: bool
    temperature: float
    method: str | Method
    similarity: str | Similarity | None
    tau: float | None
    threshold: float | Threshold | tuple[Limit, Limit] | None
    calibration: Calibration | str | PathLike[str] | None
    allow_mismatch: bool
    prompt_version: str | None
    on_uncertain: OnUncertain | Callable[[Assessment], Any]
    on_error: OnError
    tool_calls: ToolRule
    min_samples: int | None
    schedule: Schedule | None
    rounds: Sequence[int] | None
    stopping: Literal["certificate"] | StopRule | None
    timeout: float | None
    sample_timeout: float | None
    sample_max_tokens: int | None
    max_concurrency: int | None
    max_attempts: int
    sample_rate: float
    sample_when: Callable[[list[Any]], bool] | None
    question: Callable[[list[Any]], str | None] | None
    prices: Prices | None
    budget: Budget | None
    breaker: Breaker | None
    monitor: Monitor | None
    observers: Sequence[Observer]


DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "n": 5,
        "include_answer": True,
        "temperature": 1.0,
        "method": "auto",
        "similarity": None,
        "tau": None,
        "threshold": None,
        "calibration": None,
        "allow_mismatch": False,
        "prompt_version": None,
        "on_uncertain": "flag",
        "on_error": "uncertain",
        "tool_calls": "skip",
        "min_samples": None,
        "schedule": None,
        "rounds": None,
        "stopping": "certificate",
        "timeout": None,
        "sample_timeout": None,
        "sample_max_tokens": None,
        "max_concurrency": None,
        "max_attempts": 4,
        "sample_rate": 1.0,
        "sample_when": None,
        "question": None,
        "prices": None,
        "budget": None,
        "breaker": BREAKER,
        "monitor": None,
        "observers": (),
    }
)
"""What holds where a setting is left out."""

PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "n": 10,
        "include_answer": False,
        "temperature": 1.0,
        "method": "snne",
        "similarity": "rouge_l_paper",
        "tau": 1.0,
    }
)
"""The settings of the paper's experiments (arXiv 2506.00245, section 4)."""


def complete(given: Mapping[str, Any], *, owner: str) -> dict[str, Any]:
    """Return all settings of a guard.

    Args:
        given: Those that the user has set.
        owner: Name of the class, for the message.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        msg = f"{owner} has no option {', '.join(map(repr, unknown))}"
        raise ConfigurationError(msg)
    observers = observers_of(given.get("observers", ()))
    # The decision is a word here: whoever has the guard knows whom to ask instead.
    return {**DEFAULTS, **given, "observers": observers, "fallback": "whom you choose"}
