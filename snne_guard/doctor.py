"""Whether a model's samples can be trusted, found out by asking it.

A guard measures how far replies differ. Where a server ignores the temperature, answers
from a cache or draws with one seed, they never differ, and everything looks certain.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from snne_guard.call import Sender
from snne_guard.sampling.replies import Draw, ProviderCapabilities, Reply
from snne_guard.types import Cost, Sample

__all__ = ["CHECKS", "Finding", "Report", "examine", "fixes"]

Status = Literal["works", "ignored", "rejected", "missing", "broken", "unknown"]

CHECKS = ("variation", "temperature", "n", "logprobs", "finish", "usage")
"""What is looked at, in the order of the report."""

_REPLIES = 4
_CHOICES = 3

_PROMPT = (
    "Invent a village that does not exist. Say its name and one odd thing that its "
    "people do, in one sentence. This is request {number}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: What, one of ``CHECKS``.
        status: How the model behaves: it does what it is asked, silently ignores it,
            rejects it, lacks it, does it wrongly, or there is no telling.
        message: The same in words, with the evidence.
        fix: What to do about it, empty where nothing is to be done.
        trusted: Whether samples can be trusted as far as this goes.
    """

    check: str
    status: Status
    message: str
    fix: str = ""
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the examination of a model found.

    Attributes:
        model: Name of the model, None where its replies carry none.
        findings: One for each of ``CHECKS``.
        cost: What the examination took.
    """

    model: str | None
    findings: tuple[Finding, ...]
    cost: Cost

    @property
    def ok(self) -> bool:
        """Whether samples of the model can be trusted."""
        return all(found.trusted for found in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for JSON."""
        return {"ok": self.ok, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What came of the requests."""

    temperature: float
    capabilities: ProviderCapabilities
    apart: tuple[Reply, ...]
    together: Reply | None
    refused: BaseException | None = None
    samples: tuple[Sample, ...] = field(default=())


def examine(
    sender: Callable[[str], Sender],
    *,
    capabilities: ProviderCapabilities,
    temperature: float = 1.0,
) -> Report:
    """Ask a model for what must vary, and say whether its samples can be trusted.

    It takes four requests for one reply and one for three: each asks for something made
    up, so that equal replies do not come by chance.

    Args:
        sender: Makes the sender for a prompt; its samples are drawn at ``temperature``.
        capabilities: What the provider takes, as far as is known.
        temperature: Sampling temperature of the guard.

    Raises:
        Exception: The model's own error, where it does not answer at all.
    """
    started = time.monotonic()
    asked = sender(_PROMPT.format(number=secrets.randbelow(10**6)))
    apart = tuple(asked.send(Draw(role="sample")) for _ in range(_REPLIES))
    together, refused = None, None
    if capabilities.n:
        try:
            together = asked.send(Draw(role="sample", n=_CHOICES))
        except Exception as error:  # noqa: BLE001 - a finding
            refused = error
    replies = (*apart, together) if together else apart
    seen = _Seen(
        temperature=temperature,
        capabilities=capabilities,
        apart=apart,
        together=together,
        refused=refused,
        samples=tuple(sample for reply in replies for sample in reply.samples),
    )
    cost = Cost(
        calls=len(replies),
        attempts=len(replies) + (refused is not None),
        seconds=time.monotonic() - started,
    )
    for reply in replies:
        cost += reply.cost
    model = next((one.model for one in seen.samples if one.model), None)
    findings = tuple(find(seen) for find in _FINDERS)
    return Report(model=model, findings=findings, cost=cost)


def _variation(seen: _Seen) -> Finding:
    texts = [reply.first.text for reply in seen.apart]
    different = len(set(texts))
    total = f"{len(texts)} separate replies at temperature {seen.temperature:g}"
    if not any(text.strip() for text in texts):
        message = f"{total} have no text"
        fix = "give the model more tokens, or find out why it says nothing"
        return _untrusted("variation", "broken", message, fix)
    if different == len(texts):
        return Finding(
            check="variation", status="works", message=f"{total} are all different"
        )
    if different > 1:
        return Finding(
            check="variation",
            status="works",
            message=f"{total}, of which {different} are different",
        )
    ids = [reply.first.response_id for reply in seen.apart]
    if len({one for one in ids if one}) < sum(one is not None for one in ids):
        message = f"{total} are one and the same response: a cache answers"
        fix = "switch the cache off for samples, in the gateway or the application"
        return _untrusted("variation", "ignored", message, fix)
    message = f"{total} are the same words"
    fix = (
        "have the server draw at the temperature that it is asked for, without a fixed "
        'seed and without a cache (transformers serve: "do_sample": true in the '
        "model's generation_config.json)"
    )
    return _untrusted("variation", "ignored", message, fix)


def _temperature(seen: _Seen) -> Finding:
    if all(reply.temperature_set for reply in seen.apart):
        message = f"{seen.temperature:g} was accepted"
        return Finding(check="temperature", status="works", message=message)
    message = "it cannot be set, so samples are drawn at the model's own"
    return Finding(check="temperature", status="rejected", message=message)


def _n(seen: _Seen) -> Finding:
    def found(status: Status, message: str) -> Finding:
        return Finding(check="n", status=status, message=message)

    if seen.refused is not None:
        kind = type(seen.refused).__name__
        return found("rejected", f"{kind}: each sample takes a request of its own")
    if seen.together is None:
        return found("missing", "not offered: each sample takes a request of its own")
    texts = [sample.text for sample in seen.together.samples]
    if len(texts) < _CHOICES:
        told = f"asked for {_CHOICES} replies, got {len(texts)}"
        return found("ignored", f"{told}: each sample takes a request of its own")
    if len(set(texts)) == 1 and _variation(seen).trusted:
        message = f"the {_CHOICES} replies to one request are the same words"
        fix = "use a model class that asks for samples one by one"
        return _untrusted("n", "broken", message, fix)
    return found("works", f"asked for {_CHOICES} replies in one request, got them")


def _logprobs(seen: _Seen) -> Finding:
    means = [
        sum(sample.token_logprobs) / len(sample.token_logprobs)
        for sample in seen.samples
        if sample.token_logprobs
    ]
    if not means:
        asked = (
            "asked for, and left out" if seen.capabilities.logprobs else "not offered"
        )
        message = f"{asked}: the guard takes SNNE in place of WSNNE"
        return Finding(check="logprobs", status="missing", message=message)
    if len(means) < len(seen.samples):
        message = f"only {len(means)} of {len(seen.samples)} replies have them"
        return Finding(check="logprobs", status="broken", message=message)
    if max(means) == 0:
        message = "all are 0: the server gives them for greedy words, not drawn ones"
        return Finding(check="logprobs", status="broken", message=message)
    mean = sum(means) / len(means)
    message = f"one for each token, {mean:.2f} nats on average"
    return Finding(check="logprobs", status="works", message=message)


def _finish(seen: _Seen) -> Finding:
    cut = sum(sample.truncated for sample in seen.samples)
    if not cut:
        return Finding(
            check="finish", status="works", message="replies end by themselves"
        )
    message = f"{cut} of {len(seen.samples)} replies were cut off and leave the set"
    if cut < len(seen.samples):
        return Finding(check="finish", status="broken", message=message)
    fix = "give the model more tokens, or ask for shorter answers"
    return _untrusted("finish", "broken", message, fix)


def _usage(seen: _Seen) -> Finding:
    replies: Sequence[Reply] = (
        *seen.apart,
        *([seen.together] if seen.together else ()),
    )
    if not any(reply.cost.completion_tokens for reply in replies):
        message = "no tokens are counted, so the cost is not known"
        return Finding(check="usage", status="missing", message=message)
    if any(reply.cost.lower_bound for reply in replies):
        message = "not all tokens are counted, so costs are lower bounds"
        return Finding(check="usage", status="broken", message=message)
    return Finding(check="usage", status="works", message="tokens are counted")


def _untrusted(check: str, status: Status, message: str, fix: str) -> Finding:
    return Finding(check=check, status=status, message=message, fix=fix, trusted=False)


_FINDERS = (_variation, _temperature, _n, _logprobs, _finish, _usage)


def fixes(report: Report, /) -> Iterator[str]:
    """Yield what to do, each thing once."""
    yield from dict.fromkeys(found.fix for found in report.findings if found.fix)
