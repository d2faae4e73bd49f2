"""What was learnt from graded answers, and the settings that it holds for."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Self, cast

from snne_guard.decision.error_probability import ErrorProbability
from snne_guard.decision.stored import STRICT, read_sealed, read_stored, write_sealed
from snne_guard.decision.threshold import Threshold
from snne_guard.errors import ConfigurationError, InputError

__all__ = ["ANSWER_SETTINGS", "SETTINGS", "Calibration"]

_GUARD_OPTIONS: dict[str, type] = {
    "n": float,
    "include_answer": bool,
    "temperature": float,
    "method": str,
    "similarity": str,
    "tau": float,
}
_ANSWER_SETTINGS: dict[str, type] = {
    "answer_temperature": float,
    "top_p": float,
    "max_tokens": float,
    "stop": list,
}
_KINDS = {"model": str, **_GUARD_OPTIONS, "anchor": float, **_ANSWER_SETTINGS}

ANSWER_SETTINGS = tuple(_ANSWER_SETTINGS)
"""Settings of the request for the answer. They are compared only where both the
calibration and the guard know them; None means that the model decides."""

SETTINGS = tuple(_KINDS)
"""Names of the settings that a calibration is bound to."""

_FILE_KIND = "snne_guard.Calibration"
_DATE = re.compile(r"[-@](19|20)\d\d-?\d\d-?\d\d$")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A threshold made from graded answers, bound to how these were drawn and scored.

    A guard that is given one refuses to start with other settings, and accepts only
    sets that were drawn and scored as the graded ones were.

    Attributes:
        settings: How the graded answers were drawn and scored: plain values by the
            names in ``SETTINGS``.
        threshold: Largest accepted ``u``, with its promise.
        refuse: ``u`` above which an answer is always refused, None for no such limit.
        probability: Reads the probability of an error from ``u``, None where there were
            too few labels to learn it.
        reference: ``u`` of the graded answers, which ``drift`` compares new ones with.
        reply_models: Names of the model that the graded replies carried.
        temperature_set: Whether the provider took the sampling temperature.
        graders: Who graded, and how many answers.
        created: When it was made, ISO 8601 in UTC.

    Raises:
        ConfigurationError: If a setting is unknown or no plain value, or a limit is out
            of range.

    Example:
        >>> calibration = Calibration(
        ...     settings={"model": "m", "n": 5}, threshold=Threshold.fixed(0.4)
        ... )
        >>> calibration.check({"model": "m", "n": 10})
        Traceback (most recent call last):
        ...
        snne_guard.errors.ConfigurationError: the calibration was made for other
        settings: n=5, here n=10. Use these, or calibrate again
    """

    __pydantic_config__: ClassVar = STRICT

    settings: Mapping[str, Any]
    threshold: Threshold
    refuse: float | None = None
    probability: ErrorProbability | None = None
    reference: tuple[float, ...] = ()
    reply_models: tuple[str, ...] = ()
    temperature_set: bool = True
    graders: Mapping[str, int] = field(default_factory=dict[str, int])
    created: str = field(default_factory=_now)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.settings) - set(SETTINGS))
        if unknown:
            msg = f"a calibration's settings are {SETTINGS}; got {unknown} as well"
            raise ConfigurationError(msg)
        if self.refuse is not None and not self.threshold.value <= self.refuse <= 1:
            msg = (
                "expected refuse to be None or from the threshold "
                f"({self.threshold.value!r}) to 1; got {self.refuse!r}"
            )
            raise ConfigurationError(msg)
        outside = [u for u in self.reference if not 0 <= u <= 1]
        if outside:
            msg = f"expected a reference of u in [0, 1]; got {outside[0]!r}"
            raise ConfigurationError(msg)
        # Copies: what is passed in may change later.
        plain = {name: _plain(name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", plain)
        object.__setattr__(self, "graders", dict(self.graders))

    @property
    def statement(self) -> str:
        """The promise, or why there is none, in plain words."""
        return self.threshold.statement

    def check(self, settings: Mapping[str, Any], /) -> None:
        """Refuse a guard whose settings differ from those it was made for.

        Args:
            settings: The guard's, by the names in ``SETTINGS``. A name that is missing
                is not compared.

        Raises:
            ConfigurationError: If some differ; the message names them all.
        """
        differ = [
            f"{name}={self.settings.get(name)!r}, here {name}={settings[name]!r}"
            for name in self._differences(settings)
        ]
        if differ:
            msg = (
                "the calibration was made for other settings: "
                f"{'; '.join(differ)}. Use these, or calibrate again"
            )
            raise ConfigurationError(msg)

    def matches(self, settings: Mapping[str, Any], /) -> bool:
        """Return whether ``check`` lets these settings pass."""
        return not self._differences(settings)

    def _differences(self, settings: Mapping[str, Any]) -> list[str]:
        known = (name for name in SETTINGS if name in settings)
        return [name for name in known if not self._same(name, settings[name])]

    def _same(self, name: str, here: Any) -> bool:  # noqa: ANN401 - any setting
        if name in ANSWER_SETTINGS and name not in self.settings:
            return True
        if name == "model":
            return self._is_model(here)
        made = self.settings.get(name)
        try:
            here = _plain(name, here)
        except ConfigurationError:
            return False
        if name == "stop":
            return set(made or ()) == set(here or ())
        if name == "anchor":
            return (made or 0.0) == (here or 0.0)
        return bool(made == here)

    def _is_model(self, name: str | None) -> bool:
        made = self.settings.get("model")
        if name is None or made is None:
            return name is made
        # A recording may say who serves the model as well: "openai:gpt-4.1".
        return name in self.reply_models or made == name or made.endswith(f":{name}")

    def covers(
        self,
        *,
        n_used: int,
        method: str,
        similarity: str | None,
        models: Collection[str | None],
        temperature_set: bool,
    ) -> bool:
        """Return whether the threshold holds for a set of replies.

        Args:
            n_used: Members that were scored.
            method: Name of the method that ran.
            similarity: Name of the similarity that ran, None where there was none.
            models: Names of the model that the replies carried, None for a reply that
                carried none.
            temperature_set: Whether the samples were drawn at the temperature asked
                for.
        """
        return (
            n_used == self.settings.get("n")
            and method == self.settings.get("method")
            and similarity == self.settings.get("similarity")
            and temperature_set == self.temperature_set
            and all(map(self._is_reply, models))
        )

    def _is_reply(self, name: str | None) -> bool:
        # What a provider serves under one name changes: where the graded replies
        # carried names, a reply must carry one of these.
        if self.reply_models:
            return name in self.reply_models
        if name is None:
            return True  # ``check`` has seen the name that the guard asks by
        return self._is_model(name) or self._is_model(_DATE.sub("", name))

    def p_wrong(self, u: float | None, /) -> float | None:
        """Return the estimated probability that an answer is wrong, None if unknown."""
        if self.probability is None or u is None or not math.isfinite(u):
            return None
        return self.probability(u)

    def guard_settings(self) -> dict[str, Any]:
        """Return the options of the guard that it was made for, itself among them.

        Example:
            >>> calibration = Calibration(
            ...     settings={"method": "snne", "n": 5}, threshold=Threshold.fixed(0.4)
            ... )
            >>> options = calibration.guard_settings()
            >>> options.pop("calibration") is calibration, options
            (True, {'n': 5, 'method': 'snne'})
        """
        made = {name: self.settings.get(name) for name in _GUARD_OPTIONS}
        options = {name: value for name, value in made.items() if value is not None}
        return {"calibration": self, **options}

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write it as JSON with a checksum; the file appears whole or not at all.

        Raises:
            OSError: If the file cannot be written.
        """
        write_sealed(path, asdict(self), kind=_FILE_KIND)

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read what ``save`` wrote.

        Raises:
            InputError: If the file is damaged, was changed since it was written, or
                holds something else.
            OSError: If the file cannot be read.
        """
        try:
            return read_stored(cls, read_sealed(path, kind=_FILE_KIND))
        except InputError as error:
            msg = f"cannot read {os.fspath(path)!r}: {error}"
            raise InputError(msg) from error


def _plain(name: str, value: Any) -> Any:  # noqa: ANN401 - any setting
    """Return a setting as JSON holds it, so that it is the same after a file."""
    kind = _KINDS[name]
    if kind is list and isinstance(value, str):
        value = [value]
    if isinstance(value, bool):
        fits = kind is bool
    elif isinstance(value, list | tuple):
        value = [*cast("Sequence[Any]", value)]
        fits = kind is list and all(isinstance(text, str) for text in value)
    elif isinstance(value, int | float):
        fits = kind is float and abs(value) < math.inf
    else:
        fits = value is None or (kind is str and isinstance(value, str))
    if fits:
        return value
    expected = {list: "a list of texts", float: "a number", str: "a text"}
    msg = (
        f"expected the calibration's setting {name} to be None or "
        f"{expected.get(kind, 'True or False')}; got {value!r}"
    )
    raise ConfigurationError(msg)
