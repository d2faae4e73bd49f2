"""From what a model was seen to do to findings: what works, what does not, what to do.

Each check is a list of rules in order of precedence; the first that applies counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from snne_guard.sampling.evidence import Case, Cause, Finding
from snne_guard.sampling.probes import Seen, texts_of
from snne_guard.sampling.retry import is_bad_request

__all__ = ["CHECKS", "diagnose"]

_PAIR = 2
_TOKENWISE_ZERO = 1e-3


def diagnose(case: Case) -> tuple[Finding, ...]:
    """Return what is to be said about a model, one finding for each check.

    Args:
        case: What came of the requests, and what is known beside.
    """
    return tuple(next(rules(case)) for rules in _RULES.values())


def _variation(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="variation")
    at = f"at temperature {case.temperature:g}"
    if len(case.warm) < _PAIR:
        message = "only one reply came, and one agrees with nothing"
        yield found(status="unknown", message=message, trusted=False)
    if not any(text.strip() for text in case.warm):
        message = "the replies hold no text that could be compared"
        yield found(status="unknown", message=message, trusted=False)
    if case.cause == "chance":
        message = "replies to one prompt were alike, to another they were not"
        yield found(status="works", message=f"{message}: this model varies little")
    if case.cause != "varied":
        prompts = "two prompts" if _is_constant(case) else "one prompt"
        message = (
            f"separate replies to {prompts} {at} are the same words, "
            f"{_quoted(case.warm[1])}: {_WHY[case.cause]}{case.chance}"
        )
        yield found(status="ignored", message=message, fix=_fix(case), trusted=False)
    texts = [*case.warm, *case.choices]
    different = len(set(texts))
    count = "all" if different == len(texts) else f"{different} of them"
    yield found(
        status="works",
        message=f"{len(texts)} replies to one prompt {at}: {count} different",
    )


_WHY: Mapping[Cause, str] = {
    "greedy": "half the token limit brings their beginning, so the likeliest words are "
    "taken each time",
    "cache": "they were drawn once, and repeated",
    "seed": "every request is drawn with the same seed",
    "unclear": "drawn at temperature 0, with a fixed seed or taken from a cache, there "
    "is no telling",
}


def _fix(case: Case) -> str:
    if not case.temperature:
        return "give the guard a temperature above 0"
    if case.cause == "cache":
        return "have no cache answer for samples"
    if case.cause == "seed":
        return _GIVE_SEED if case.seeds_differ else "take the fixed seed off the server"
    return (
        "have the server draw at the temperature that it is asked for (transformers "
        'serve: "do_sample": true in the model\'s generation_config.json)'
    )


_GIVE_SEED = "give the model a seed, such as seed=1: each sample then gets its own"


def _temperature(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="temperature")
    warm, own = f"{case.temperature:g}", "replies are drawn at one of its own"
    if "temperature" in case.rejected:
        yield found(status="rejected", message=f"the provider takes none: {own}")
    if not case.abilities.temperature:
        message = f"this class of chat model has none to set: {own}"
        yield found(status="missing", message=message)
    if not case.temperature:
        message = "the guard samples at 0, where nothing is to vary"
        yield found(status="unknown", message=message)
    yield from _temperature_of_repeats(case)
    if len(case.cold) < _PAIR:
        yield found(status="unknown", message="no replies came at 0 to compare with")
    if len(set(case.cold)) == 1:
        yield found(status="works", message=f"replies are alike at 0, not at {warm}")
    if case.colder_is_alike:
        message = f"replies begin alike at 0, not at {warm}"
        yield found(status="works", message=message)
    if case.colder_is_likelier:
        message = f"replies are made of likelier words at 0 than at {warm}"
        yield found(status="works", message=message)
    # Not like a provider that takes none and says so: then each call names it too.
    yield found(
        status="ignored",
        message=f"replies differ at 0 as much as at {warm}: {own}",
        fix=_OWN_TEMPERATURE,
        trusted=False,
    )


_OWN_TEMPERATURE = (
    "have the server draw at the temperature that it is asked for; else judge its "
    "replies by a threshold that was learnt from them, since at an unknown temperature "
    "agreement may mean little"
)


def _temperature_of_repeats(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="temperature")
    if case.cause in {"greedy", "unclear"}:
        what = "no reply differs"
        if case.warm[1] in case.cold:
            what = "the same words come at 0"
        message = f"{case.temperature:g} has no effect: {what}"
        yield found(status="ignored", message=message)
    if case.cause == "seed" and case.cold:
        yield found(status="works", message="other words come at 0")
    if case.cause == "cache" and case.choices_differ:
        message = "the replies to one request differ"
        yield found(status="works", message=message)
    if case.cause == "cache":
        yield found(status="unknown", message="a cache answers")


def _n(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="n")
    apart, asked, got = "each sample takes a request", case.seen.asked, case.choices
    if not case.abilities.batch:
        yield found(status="missing", message=f"one reply to a request: {apart}")
    if len(texts_of(case.seen.fewer)) > 1:
        message = f"{asked} replies to one request are refused, 2 are given"
        yield found(status="works", message=message)
    if any(_is_refused(one) for one in case.seen.fewer):
        message = f"{asked} replies to one request are refused: {apart}"
        yield found(status="rejected", message=message)
    if not got:
        yield found(status="unknown", message="no replies came")
    if len(got) == 1:
        message = f"asked for {asked} replies, got 1 without a word: {apart}"
        yield found(status="ignored", message=message)
    if case.cause in {"varied", "chance"} and not case.choices_differ:
        yield found(
            status="broken",
            message=f"the {len(got)} replies to one request are copies of one",
            fix="call guard.preflight() first: the guard then asks for each by itself",
            trusted=False,
        )
    rest = "" if len(got) >= asked else ", and then for the rest"
    message = f"asked for {asked} replies in one request, got {len(got)}{rest}"
    yield found(status="works", message=message)


def _logprobs(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="logprobs")
    answered = [one for one in (*case.seen.warm, *case.seen.batch) if one.reply]
    values = [s.token_logprobs for one in answered for s in one.samples]
    known = [value for value in values if value is not None]
    if "logprobs" in case.rejected:
        yield found(status="rejected", message="the provider refuses to give any")
    if not case.abilities.logprobs:
        yield found(status="missing", message="this way of asking brings none")
    if any(one.garbled for one in answered):
        message = "some are above 0, or no numbers"
        yield found(status="broken", message=message)
    if any(sample.misaligned for one in answered for sample in one.samples):
        message = "their tokens are not those of the text"
        yield found(status="broken", message=message)
    if not known:
        message = "asked for, and left out without a word"
        yield found(status="missing", message=message)
    if len(known) < len(values):
        message = f"only {len(known)} of {len(values)} replies have them"
        yield found(status="broken", message=message)
    tokens = [value for reply in known for value in reply]
    if not any(tokens):
        message = "all are 0, as if every token were certain"
        yield found(status="broken", message=message)
    mean = math.fsum(tokens) / len(tokens)
    message = f"one for each token, {mean:.2f} nats on average{_when(case)}"
    yield found(status="works", message=message)


def _when(case: Case) -> str:
    """Return whether log-probabilities are those before the temperature."""
    cold = [s.token_logprobs for one in case.seen.cold for s in one.samples]
    tokens = [value for reply in cold if reply is not None for value in reply]
    if not tokens or case.cause == "cache":
        return ""
    before = any(value < -_TOKENWISE_ZERO for value in tokens)
    return f", {'before' if before else 'after'} the temperature is applied"


def _seed(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="seed")
    if not case.abilities.seed:
        message = "this class of chat model has none to set"
        yield found(status="missing", message=message)
    error = next((one.error for one in case.seen.seeded if one.error), None)
    if error is not None and not isinstance(error, TimeoutError):
        yield found(status="rejected", message="the provider refuses one")
    if case.cause == "greedy":
        yield found(status="unknown", message="nothing varies that one could fix")
    if len(case.seeded) <= _PAIR:
        yield found(status="unknown", message="no replies came")
    first, again, other = case.seeded
    if case.cause == "seed" and first != other:
        message = "without one, every request draws the same"
        yield found(status="works", message=message, fix=_GIVE_SEED)
    if first == again != other:
        message = "the same one draws the same again, another one does not"
        if case.abilities.own_seed:
            message += "; yours is counted up, so that each sample has its own"
        yield found(status="works", message=message)
    if first == again:
        yield found(status="unknown", message="nothing varies that one could fix")
    yield found(status="ignored", message="the same one draws something else")


def _cache(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="cache")
    if case.cause == "cache":
        evidence = "by its name it is the same response"
        if not case.same_response:
            evidence = "the same request brings the same, another token limit does not"
        if not case.same_response and case.seen.begins_alike:
            evidence = "another token limit brings the very same words"
        message = f"one answers in place of the model: {evidence}"
        yield found(status="broken", message=message)
    if case.cause == "unclear":
        yield found(status="unknown", message="with one it would look the same")
    if len(texts_of(case.seen.short)) < _PAIR:
        yield found(status="unknown", message="no request was answered twice")
    if case.own_cache:
        message = "LangChain's is on, and samples go round it"
        yield found(status="works", message=message)
    yield found(status="works", message="none answers in place of the model")


def _max_tokens(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="max_tokens")
    limit = f"{case.seen.max_tokens} tokens"
    if case.heeds_limit is None:
        yield found(status="unknown", message=f"every reply ended before {limit}")
    if not case.heeds_limit:
        yield found(status="ignored", message=f"replies go on after {limit}")
    yield found(status="works", message=f"replies end at {limit} when told to")


def _usage(case: Case) -> Iterator[Finding]:
    found = partial(Finding, check="usage")
    answered = [one.reply for one in case.seen.warm if one.reply is not None]
    if not any(reply.cost.prompt_tokens for reply in answered):
        message = "tokens are not counted, so costs are lower bounds"
        yield found(status="missing", message=message)
    batch = [one.reply for one in case.seen.batch if one.reply is not None]
    for reply in batch:
        cut = sum(sample.truncated for sample in reply.samples)
        written = reply.cost.completion_tokens
        if reply.cost.lower_bound or written < cut * case.seen.half:
            message = (
                f"only {written} tokens are counted for {len(reply.samples)} replies "
                "to one request, so costs are lower bounds"
            )
            yield found(status="broken", message=message)
    yield found(status="works", message="tokens are counted")


_RULES: Mapping[str, Callable[[Case], Iterator[Finding]]] = {
    "variation": _variation,
    "temperature": _temperature,
    "n": _n,
    "logprobs": _logprobs,
    "seed": _seed,
    "cache": _cache,
    "max_tokens": _max_tokens,
    "usage": _usage,
}

CHECKS = tuple(_RULES)
"""What is looked at, in the order of the findings."""


def _is_refused(seen: Seen) -> bool:
    # One reply where two were asked for is no more than without asking.
    return seen.error is None or is_bad_request(seen.error)


def _is_constant(case: Case) -> bool:
    return texts_of(case.seen.other)[:1] == case.warm[1:2]


def _quoted(text: str, longest: int = 40) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= longest else line[: longest - 1] + "…")
