"""The settings that a calibration is bound to: their names, and what they may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from snne_guard.decision.stop_texts import are_stops, same_stops
from snne_guard.errors import ConfigurationError

__all__ = [
    "ANSWER_SETTINGS",
    "BOUND",
    "NOT_A_GUARD_S",
    "NO_ANCHOR",
    "are_same",
    "check_anchor",
    "check_settings",
    "plain",
]

BOUND = (
    "model",
    "prompt_version",
    "temperature",
    "answer_temperature",
    "top_p",
    "max_tokens",
    "stop",
    "n",
    "include_answer",
    "rounds",
    "method",
    "similarity",
    "anchor",
    "tau",
)
"""The settings that a guard must share with its calibration."""

ANSWER_SETTINGS = frozenset({"answer_temperature", "top_p", "max_tokens", "stop"})
"""What the request for the answer carries: a number, texts, or None where it was left
to the model. Compared only where a calibration says it: recordings of other programs
and older files do not."""

_SEEN = ("reply_models", "temperature_unset")
"""What shows in each call only."""

NOT_A_GUARD_S = frozenset({"model", "prompt_version", "anchor"}) | ANSWER_SETTINGS
"""Those that the model, the program or the similarity has, and no option of a guard."""


NO_ANCHOR = 0.0
"""What files of before it was bound were made with, which do not say it."""


def check_settings(settings: Mapping[str, Any], /) -> None:
    """Refuse settings that no calibration has.

    Raises:
        ConfigurationError: One has another name, or is of another kind than it must be.
    """
    unknown = sorted(set(settings) - {*BOUND, *_SEEN})
    if unknown:
        msg = f"a calibration's settings are {[*BOUND]}; got {unknown} as well"
        raise ConfigurationError(msg)
    model, replies = settings.get("model"), settings.get("reply_models", ())
    if not isinstance(model, str | None):
        msg = f"the model of a calibration is a text or None; got {model!r}"
        raise ConfigurationError(msg)
    listed: list[object] = [*replies] if isinstance(replies, list | tuple) else [None]
    if not all(isinstance(name, str) for name in listed):
        msg = f"reply_models of a calibration are a list of texts; got {replies!r}"
        raise ConfigurationError(msg)
    if not are_stops(stops := settings.get("stop")):
        msg = f"stop of a calibration is a list of texts or None; got {stops!r}"
        raise ConfigurationError(msg)
    for name in sorted(ANSWER_SETTINGS - {"stop"}):
        value = settings.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            msg = f"{name} of a calibration is a number or None; got {value!r}"
            raise ConfigurationError(msg)
    if (anchor := settings.get("anchor")) is not None:
        check_anchor(anchor)


def are_same(name: str, made: Any, here: Any) -> bool:  # noqa: ANN401 - of a setting
    """Return whether a setting of a calibration and of a guard are alike.

    Example:
        >>> are_same("n", 5, 10), are_same("stop", ["."], [".", ".."])
        (False, True)
    """
    return same_stops(made, here) if name == "stop" else bool(made == here)


def check_anchor(value: object, /) -> None:
    """Refuse what is no share of a method's weight.

    Raises:
        ConfigurationError: It is no number in [0, 1].
    """
    number = math.nan if isinstance(value, bool) else value
    if not (isinstance(number, int | float) and 0 <= number <= 1):  # NaN is nowhere
        msg = f"anchor must be a number in [0, 1]; got {value!r}"
        raise ConfigurationError(msg)


def plain(value: Any) -> Any:  # noqa: ANN401 - of a setting
    """Return a setting as JSON has it, so that it is the same after a file.

    Raises:
        ConfigurationError: It is neither a plain value nor a list of such.

    Example:
        >>> plain((3, 5, 10))
        [3, 5, 10]
    """
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Iterable[Any]", value)]
    if value is None or isinstance(value, str | int | float):
        return value
    msg = f"expected a calibration's settings to be plain values, got {value!r}"
    raise ConfigurationError(msg)
