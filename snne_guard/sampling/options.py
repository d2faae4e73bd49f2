"""What samples leave out of the options that users give, and what they put anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, cast

from snne_guard.sampling.collect import Draw
from snne_guard.sampling.reading import as_mapping

__all__ = [
    "ANSWER_OPTIONS",
    "INCLUDED_LOGPROBS",
    "SET_ANEW",
    "AnswerSettings",
    "cleaned",
    "draw_seed",
    "numbers_in",
    "numbers_of",
    "together",
    "unstored",
]

ANSWER_OPTIONS: Mapping[str, str] = {
    "answer_temperature": "temperature",
    "top_p": "top_p",
}
"""Options of the request for the answer, by what a calibration calls them."""

_SPELLINGS: Mapping[str, tuple[str, ...]] = {"top_p": ("top_p", "topP")}
"""Names of an option, where providers take it by several."""

AnswerSettings: TypeAlias = Mapping[str, AbstractSet[float | None]]
"""What the answer may be drawn with, by the names in ``ANSWER_OPTIONS``: None is left
to the model, and nothing is there where nobody knows."""

INCLUDED_LOGPROBS = "message.output_text.logprobs"
"""How the Responses API is asked for log-probabilities, in the option ``include``."""

SET_ANEW = frozenset(
    {
        "logprobs",
        "n",
        "seed",
        "stream",
        "stream_options",
        "temperature",
        "top_logprobs",
    }
)
"""Options of OpenAI's API that are set for samples, wherever the user has put them."""


def cleaned(
    options: Mapping[str, Any],
    *,
    nested: Collection[str],
    limits: Collection[str],
    max_tokens: int | None = None,
    anew: Collection[str] = SET_ANEW,
) -> dict[str, Any]:
    """Return options as samples may carry them, those inside of others too.

    Nothing is stored, and what is set anew for each request is left out.

    Args:
        options: As the user has given them; left as they are.
        nested: Options that hold further options.
        limits: Options that limit the tokens of a reply.
        max_tokens: Token limit of a sample in place of the user's, None to keep that.
        anew: Options that are set anew.

    Example:
        >>> cleaned(
        ...     {"seed": 1, "store": True, "extra_body": {"n": 2, "top_k": 5}},
        ...     nested=["extra_body"],
        ...     limits=["max_tokens"],
        ... )
        {'store': False, 'extra_body': {'top_k': 5}}
    """
    kept = {name: value for name, value in options.items() if name not in anew}
    for place in nested:
        if inner := as_mapping(kept.get(place)):
            kept[place] = cleaned(
                inner, nested=nested, limits=limits, max_tokens=max_tokens, anew=anew
            )
    if isinstance(included := kept.get("include"), list | tuple):
        names = cast("Sequence[object]", included)
        kept["include"] = [name for name in names if name != INCLUDED_LOGPROBS]
    if max_tokens is not None:
        kept |= {name: max_tokens for name in limits if name in kept}
    return unstored(kept) if "store" in kept else kept


def unstored(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with which OpenAI keeps nothing of a reply.

    Example:
        >>> unstored({"metadata": {"user": "7"}, "stop": "."})
        {'stop': '.', 'store': False}
    """
    # Chat Completions take metadata only for what is stored.
    kept = {name: value for name, value in options.items() if name != "metadata"}
    return {**kept, "store": False}


def numbers_of(value: object) -> frozenset[float | None]:
    """Return the number that an option means, empty where it is none.

    Example:
        >>> numbers_of(0), numbers_of(None), numbers_of("warm")
        (frozenset({0.0}), frozenset({None}), frozenset())
    """
    if value is None:
        return frozenset({None})
    if isinstance(value, bool) or not isinstance(value, int | float):
        return frozenset()
    return frozenset({float(value)})


def numbers_in(
    given: Mapping[str, Any], option: str, /
) -> frozenset[float | None] | None:
    """Return what options say one of them is, however spelled; None if nothing.

    Example:
        >>> numbers_in({"topP": 0.5}, "top_p"), numbers_in({"top_k": 5}, "top_p")
        (frozenset({0.5}), None)
    """
    said = [name for name in _SPELLINGS.get(option, (option,)) if name in given]
    if not said:
        return None
    return frozenset[float | None]().union(*(numbers_of(given[name]) for name in said))


def together(found: Iterable[AnswerSettings]) -> AnswerSettings:
    """Return the settings of an answer that any of several requests may give.

    Example:
        >>> together([{"top_p": {0.9}}, {"top_p": {None}}, {}])["top_p"] == {0.9, None}
        True
    """
    many = list(found)
    return {
        name: frozenset[float | None]().union(*(one.get(name, ()) for one in many))
        for name in ANSWER_OPTIONS
    }


def draw_seed(seed: int, draw: Draw) -> int:
    """Return the seed of a draw, from the one that the user has set.

    The same seed for all would draw the same sample again and again.
    """
    return seed + 1 + draw.index
