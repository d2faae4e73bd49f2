"""The plain ``openai`` client, guarded: the same calls, the answers assessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

from snne_guard import ConfigurationError, Decision, GuardSettings, InputError
from snne_guard.decision import REFUSAL
from snne_guard_integrations._extras import required

if TYPE_CHECKING:
    import openai

__all__ = ["AssessmentRecord", "CostRecord", "assessment", "guard_client"]

ClientT = TypeVar("ClientT", bound="openai.OpenAI | openai.AsyncOpenAI")


class CostRecord(TypedDict):
    """What a guarded call took, the answer and every sample counted once.

    Attributes:
        calls: Requests that the provider answered.
        attempts: Requests sent, the failed and repeated ones included.
        prompt_tokens: Tokens read.
        cached_tokens: Those of them that came from a prompt cache.
        completion_tokens: Tokens written.
        seconds: Wall time from the first request to the decision.
        rounds: Rounds of samples that were sent.
        samples_saved: Samples that were not drawn, the decision being settled.
        lower_bound: Whether the true figures may be higher.
        money: What the tokens are worth, None without prices.
    """

    calls: int
    attempts: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    rounds: int
    samples_saved: int
    lower_bound: bool
    money: float | None


class AssessmentRecord(TypedDict):
    """What an answer carries: plain values, and nothing of what was said.

    Attributes:
        id: Unique id, under which observers got the whole assessment.
        method: Name of the method, None when nothing was scored.
        score: Its raw value in its own unit, None when nothing was scored.
        uncertainty: ``u`` in [0, 1], 0: all answers alike; None when nothing was
            scored.
        threshold: Largest ``u`` that is accepted, None when none was set.
        certified: Whether that threshold carries a statistical promise that holds for
            this very call.
        p_wrong: Probability that the answer is wrong, None where no calibration says
            so.
        p_wrong_interval: Its 90 % band, lower end first.
        decision: What was decided, None when no threshold was set.
        n_requested: Members that were asked for.
        n_used: Members that were scored.
        reasons: What was not as usual, as reason codes.
        cost: What the call took.
        audit: Whether the answer was picked for a check by hand, None where nothing
            watches the guard.
        version: The version of snne-guard.
    """

    id: str
    method: str | None
    score: float | None
    uncertainty: float | None
    threshold: float | None
    certified: bool
    p_wrong: float | None
    p_wrong_interval: list[float] | None
    decision: Decision | None
    n_requested: int
    n_used: int
    reasons: list[str]
    cost: CostRecord
    audit: bool | None
    version: str


def guard_client(
    client: ClientT,
    *,
    fallback: str | Callable[[dict[str, Any]], Any] | None = None,
    refusal: str = REFUSAL,
    **settings: Unpack[GuardSettings],
) -> ClientT:
    """Return a client like yours, whose chat completions and responses are guarded.

    Use it where yours stands: ``chat.completions.create``, ``parse`` and ``stream``,
    ``responses.create``, ``parse`` and ``stream``, with the same arguments. What comes
    back is of the same type with the same content and its own usage, and carries the
    assessment, see ``assessment``. Everything else passes through untouched, and your
    own client is never changed.

    Args:
        client: ``OpenAI``, ``AsyncOpenAI``, ``AzureOpenAI``, or one of their kind.
        fallback: Who answers instead, with ``on_uncertain="fallback"`` or where the
            answer itself fails: the name of another model, or a function from the
            arguments of ``create`` to a completion (a response) or a text; it may be
            async where the client is.
        refusal: The text in place of a refused answer; where JSON was asked for, it is
            the message's ``refusal`` and the content is None, as OpenAI does it.
        **settings: How it samples, scores and decides, see ``GuardSettings``; the most
            important are ``n``, ``threshold`` and ``on_uncertain``.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one, or
            the client is none of the openai package or guarded already.
        MissingExtraError: If the openai package is missing or too old.

    Example::

        client = guard_client(OpenAI(), n=5, threshold=0.4)
        completion = client.chat.completions.create(
            model="gpt-4.1-mini",
            messages=[{"role": "user", "content": "Capital of France?"}],
        )
        assessment(completion)["uncertainty"]
    """
    required("openai", extra="openai", at_least="1.109")
    from snne_guard_integrations._openai.client import guarded
    from snne_guard_integrations._openai.shared import Delivery

    named = isinstance(fallback, str) and bool(fallback)
    if not (fallback is None or named or callable(fallback)):
        msg = (
            "fallback must be the name of a model, a function, or None; "
            f"got {fallback!r}"
        )
        raise ConfigurationError(msg)
    if fallback is None and settings.get("on_uncertain") == "fallback":
        msg = 'on_uncertain="fallback" needs a fallback: whoever answers instead'
        raise ConfigurationError(msg)
    delivery = Delivery(fallback=fallback, refusal=refusal)
    return cast("ClientT", guarded(client, delivery, {**settings}))


def assessment(answer: object) -> AssessmentRecord:
    """Return what was found out about an answer of a guarded client.

    Args:
        answer: A completion, a response, the last chunk of a stream or the stream
            itself once it has ended.

    Raises:
        InputError: If it carries none.

    Example:
        >>> assessment("Paris")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        snne_guard.errors.InputError: there is no assessment on this str...
    """
    found = getattr(answer, "snne_guard", None)
    if not isinstance(found, dict):
        msg = (
            f"there is no assessment on this {type(answer).__name__}: it is on what a "
            "client of guard_client() answers, on the last chunk of a stream, and on "
            "the stream once it has ended"
        )
        raise InputError(msg)
    return cast("AssessmentRecord", found)
