"""What samples leave out of the options that users give, and what they put anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard, cast

from snne_guard.sampling.collect import Draw
from snne_guard.sampling.reading import as_mapping

__all__ = [
    "ANSWER_OPTIONS",
    "ANY_LIMIT",
    "INCLUDED_LOGPROBS",
    "SET_ANEW",
    "AnswerOption",
    "AnswerSettings",
    "AnswerValue",
    "cleaned",
    "draw_seed",
    "together",
    "unstored",
]

ANY_LIMIT = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "maxTokens",
    "max_new_tokens",
    "num_predict",
)
"""Every name under which a provider takes the token limit of a reply."""

AnswerValue: TypeAlias = float | tuple[str, ...] | None
"""What an option of the request for the answer is; None is left to the model."""

AnswerSettings: TypeAlias = Mapping[str, AbstractSet[AnswerValue]]
"""What the answer may be drawn with, by the names in ``ANSWER_OPTIONS``: nothing is
there where nobody knows."""

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


def _number(value: object) -> AnswerValue:
    return float(value) if _is_number(value) else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: object) -> AnswerValue:
    return int(value) if _is_number(value) and float(value).is_integer() else None


def _texts(value: object) -> AnswerValue:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        return None
    texts = cast("Sequence[object]", value)
    found = tuple(text for text in texts if isinstance(text, str))
    return found if len(found) == len(texts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOption:
    """An option of the request for the answer that a calibration is bound to.

    Attributes:
        names: What providers call it, in requests and as fields of their classes.
        read: Returns the value that an option means, None where it is none.
        always_said: Whether None in a request leaves it to the model, in place of what
            is set elsewhere; else nothing is said by it.
    """

    names: tuple[str, ...]
    read: Callable[[object], AnswerValue] = _number
    always_said: bool = True

    def values(self, value: object) -> frozenset[AnswerValue]:
        """Return what a value of the option means, empty where it means nothing.

        Example:
            >>> heat = ANSWER_OPTIONS["answer_temperature"]
            >>> heat.values(0), heat.values(None), heat.values("warm")
            (frozenset({0.0}), frozenset({None}), frozenset())
        """
        if value is None:
            return frozenset({None})
        found = self.read(value)
        return (
            frozenset()
            if found is None
            else frozenset({None if found == () else found})
        )

    def values_in(self, given: Mapping[str, Any]) -> frozenset[AnswerValue] | None:
        """Return what options say that it is, however spelled; None if nothing.

        Example:
            >>> nucleus = ANSWER_OPTIONS["top_p"]
            >>> nucleus.values_in({"topP": 0.5}), nucleus.values_in({"top_k": 5})
            (frozenset({0.5}), None)
        """
        said = [
            given[name]
            for name in self.names
            if name in given and (self.always_said or given[name] is not None)
        ]
        if not said:
            return None
        return frozenset[AnswerValue]().union(*map(self.values, said))


ANSWER_OPTIONS: Mapping[str, AnswerOption] = {
    "answer_temperature": AnswerOption(names=("temperature",)),
    "top_p": AnswerOption(names=("top_p", "topP")),
    "max_tokens": AnswerOption(names=ANY_LIMIT, read=_whole),
    "stop": AnswerOption(
        names=("stop", "stop_sequences", "stopSequences"),
        read=_texts,
        always_said=False,  # None is what LangChain passes where nobody says it
    ),
}
"""Options of the request for the answer, by what a calibration calls them."""


def together(found: Iterable[AnswerSettings]) -> AnswerSettings:
    """Return the settings of an answer that any of several requests may give.

    Example:
        >>> together([{"top_p": {0.9}}, {"top_p": {None}}, {}])["top_p"] == {0.9, None}
        True
    """
    many = list(found)
    return {
        name: frozenset[AnswerValue]().union(*(one.get(name, ()) for one in many))
        for name in ANSWER_OPTIONS
    }


def draw_seed(seed: int, draw: Draw) -> int:
    """Return the seed of a draw, from the one that the user has set.

    The same seed for all would draw the same sample again and again.
    """
    return seed + 1 + draw.index
