"""What a model is asked to find out how it samples: few requests, no provider."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from snne_guard.sampling.agreement import words_of
from snne_guard.sampling.collect import Reply
from snne_guard.types import Sample

__all__ = [
    "Abilities",
    "Ask",
    "Observations",
    "Seen",
    "probing",
    "texts_of",
]

_TOKENS = 12
_SLOW = 4.0
"""Seconds for half of these tokens from which on fewer have to do."""
_TOKENS_TO_THINK = 1024
_BATCH = 3
_SEED = 20_240_613


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What is known of a model before it is asked anything.

    Attributes:
        batch: Whether several replies may be asked for in one request.
        logprobs: Whether log-probabilities are asked for.
        temperature: Whether there is a temperature to set.
        seed: Whether there is a seed to set.
        own_seed: Whether the user has set one, which is counted up for each sample.
        max_tokens: Token limit of the user's samples, None without one.
    """

    batch: bool = True
    logprobs: bool = True
    temperature: bool = True
    seed: bool = True
    own_seed: bool = False
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to make.

    Attributes:
        prompt: What is asked.
        max_tokens: Token limit of the reply.
        index: Position among the samples, which a seed of the user's is offset by.
        n: Replies asked for.
        cold: Whether at temperature 0; else at the guard's own.
        seed: What to seed the draw with, None for nothing.
    """

    prompt: str
    max_tokens: int
    index: int = 0
    n: int = 1
    cold: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of one request.

    Attributes:
        reply: What came back, None where nothing did.
        garbled: Whether log-probabilities came that are none: above 0, or no numbers.
        response_id: The provider's name for this response, None if it gives none.
        seconds: How long it took.
        error: Why nothing came back.
    """

    reply: Reply | None = None
    garbled: bool = False
    response_id: str | None = None
    seconds: float = 0.0
    error: BaseException | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The replies, none where the request failed."""
        return () if self.reply is None else self.reply.samples

    @property
    def texts(self) -> tuple[str, ...]:
        """What they say."""
        return tuple(words_of(sample) for sample in self.samples)


@dataclass(slots=True, kw_only=True)
class Observations:
    """Everything that was seen; what was not asked is empty.

    Attributes:
        first: A reply of full length, at the guard's temperature.
        short: Two separate requests for the same with half the token limit.
        cold: One or two such requests at temperature 0.
        batch: One such request for several replies.
        fewer: One such request for two replies, where ``batch`` was refused.
        other: Two such requests with another prompt, where there is a doubt.
        seeded: Three such requests, the same seed twice, then another one.
        asked: Replies asked for in ``batch``.
        max_tokens: Token limit of the first reply.
        half: Token limit of all others.
    """

    first: Seen = field(default_factory=Seen)
    short: list[Seen] = field(default_factory=list[Seen])
    cold: list[Seen] = field(default_factory=list[Seen])
    batch: list[Seen] = field(default_factory=list[Seen])
    fewer: list[Seen] = field(default_factory=list[Seen])
    other: list[Seen] = field(default_factory=list[Seen])
    seeded: list[Seen] = field(default_factory=list[Seen])
    asked: int = _BATCH
    max_tokens: int = _TOKENS
    half: int = _TOKENS // 2

    @property
    def warm(self) -> list[Seen]:
        """Separate replies to one prompt at the guard's temperature."""
        return [self.first, *self.short]

    @property
    def begins_alike(self) -> bool:
        """Whether the second reply is the first one, or its beginning."""
        first, second = self.first.texts, texts_of(self.short[:1])
        return bool(first and second) and first[0].startswith(second[0].rstrip())

    @property
    def is_written_anew(self) -> bool:
        """Whether the second reply is a mere beginning of the first."""
        return self.begins_alike and self.first.texts != self.short[0].texts

    @property
    def is_greedy(self) -> bool:
        """Whether what is written anew is what temperature 0 gives."""
        cold = texts_of(self.cold[:1])
        return self.is_written_anew and cold == texts_of(self.short[:1])

    @property
    def repeats(self) -> bool:
        """Whether the same request brought the same words twice."""
        texts = texts_of(self.short)
        return len(texts) > 1 and texts[0] == texts[1]


def texts_of(seen: Sequence[Seen]) -> list[str]:
    """Return the words of all replies, in order."""
    return [text for one in seen for text in one.texts]


Probing = Generator[Ask, Seen, Observations]


def probing(abilities: Abilities) -> Probing:
    """Yield the requests to make, take what came of them, and go on.

    They go out one after the other: what a server draws at temperature 0, with a seed
    or from a cache depends on what it does beside it. What matters most comes first,
    since a slow model may not get to the end.

    Args:
        abilities: What is known beforehand.

    Returns:
        Everything that was seen.

    Example:
        >>> step = probing(Abilities())
        >>> ask = next(step)
        >>> ask.n, ask.max_tokens
        (1, 6)
    """
    ask = yield from _started(found := Observations(), abilities)
    if ask is None:
        return found
    if abilities.temperature:
        found.cold.append((yield replace(ask, cold=True)))
    if abilities.batch:
        yield from _several(found, ask)
    # Without a seed of the user's, this is the same request once more.
    found.short.append((yield replace(ask, index=2)))
    if found.repeats:
        yield from _doubts(found, ask)
    elif abilities.temperature:
        found.cold.append((yield replace(ask, index=1, cold=True)))
    if abilities.seed and not found.is_greedy:
        yield from _seeds(found, ask)
    return found


Steps = Generator[Ask, Seen, None]


def _started(
    found: Observations, abilities: Abilities
) -> Generator[Ask, Seen, Ask | None]:
    """Get the first two replies; return what to ask further, None if nothing."""
    limit = min(abilities.max_tokens or _TOKENS, _TOKENS)
    half = max(1, limit // 2)
    ask = Ask(prompt=_prompt(), max_tokens=half)
    one = yield ask
    if _thinks(one):
        limit = half = abilities.max_tokens or _TOKENS_TO_THINK
        ask = replace(ask, max_tokens=limit)
        one = yield ask
    elif one.seconds > _SLOW:
        limit, half = half, max(1, half // 2)
    found.first, found.max_tokens, found.half = one, limit, half
    if one.reply is None:
        return None
    if ask.max_tokens == half:
        found.first = yield replace(ask, index=1, max_tokens=limit)
        found.short.append(one)
    else:
        ask = replace(ask, max_tokens=half)
        found.short.append((yield replace(ask, index=1)))
    return ask


def _several(found: Observations, ask: Ask) -> Steps:
    # Behind the others, since a seed of the user's is offset by the index.
    ask = replace(ask, index=3, n=_BATCH)
    found.batch.append((yield ask))
    if found.batch[0].error is not None:
        found.fewer.append((yield replace(ask, n=2)))


def _doubts(found: Observations, ask: Ask) -> Steps:
    if found.is_written_anew:  # three times the same words: neither chance nor a cache
        return
    ask = replace(ask, prompt=_prompt())
    for index in range(2):
        found.other.append((yield replace(ask, index=index)))


def _seeds(found: Observations, ask: Ask) -> Steps:
    for seed in (_SEED, _SEED, _SEED + 1):
        found.seeded.append((yield replace(ask, seed=seed)))
        if found.seeded[-1].error is not None:
            return


def _prompt() -> str:
    # Numbers that never came before: what an earlier run left in a cache is no answer.
    year, miles = 1000 + secrets.randbelow(900), 2 + secrets.randbelow(9998)
    return (
        f"Make up a village near the year {year}, {miles} miles from the sea: its "
        "name, a dash, and the number of its people. Nothing else."
    )


def _thinks(seen: Seen) -> bool:
    """Return whether the limit was too low for anything to be said."""
    if seen.error is not None:
        return "max_tokens" in str(seen.error) or "max_output_tokens" in str(seen.error)
    return all(not text.strip() for text in seen.texts)
