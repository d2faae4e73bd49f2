"""Checks of options; each raises ConfigurationError, and quotes no text."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from difflib import get_close_matches
from numbers import Real

from snne_guard.errors import ConfigurationError


def check_names(given: Iterable[str], known: Collection[str], /, *, what: str) -> None:
    """Refuse a name that is not among the known ones.

    Raises:
        ConfigurationError: There is one; the message names the nearest known one.
    """
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            msg = f"unknown {what} {name!r}{hint}"
            raise ConfigurationError(msg)


def check_number(
    value: object,
    /,
    *,
    what: str,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """Return an option as a float: finite, above and below, at least and at most.

    Raises:
        ConfigurationError: It is not a real number, not finite, or beyond a limit; the
            message names it by ``what``.
    """
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            number = float(value)
            if above < number < below and least <= number <= most:
                return number
    words = {"above": above, "of at least": least, "below": below, "at most": most}
    limits = [
        f"{word} {limit:g}" for word, limit in words.items() if math.isfinite(limit)
    ]
    kind = f"a finite number {' and '.join(limits)}".strip()
    msg = f"expected {what} to be {kind}, got {value!r}"
    raise ConfigurationError(msg)


def check_whole(
    value: object, /, *, what: str, least: int, most: float = math.inf
) -> None:
    """Refuse an option that is not a whole number from ``least`` to ``most``.

    Raises:
        ConfigurationError: It is one; the message names it by ``what``.
    """
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not least <= value <= most
    ):
        upper = f" and at most {most:g}" if math.isfinite(most) else ""
        kind = f"a whole number of at least {least}{upper}"
        msg = f"expected {what} to be {kind}, got {value!r}"
        raise ConfigurationError(msg)


def check_choice(value: object, choices: tuple[str, ...], /, *, what: str) -> None:
    """Raise ConfigurationError for an option that is none of the words it may be."""
    if value not in choices:
        words = ", ".join(map(repr, choices))
        msg = f"expected {what} to be one of {words}, got {value!r}"
        raise ConfigurationError(msg)


def check_function(value: object, /, *, what: str) -> None:
    """Check an option that is called with one argument.

    Raises:
        ConfigurationError: It cannot be called so, or has to be awaited.
    """
    if not callable(value) or inspect.iscoroutinefunction(value):
        msg = f"expected {what} to be a plain function, got {value!r}"
        raise ConfigurationError(msg)
    try:
        inspect.signature(value).bind(None)
    except TypeError as error:
        msg = f"expected {what} to take one argument: {error}"
        raise ConfigurationError(msg) from None
    except ValueError:
        pass  # a built-in function may not say what it takes
