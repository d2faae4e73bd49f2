"""A threshold with all that it was made for, as a file that a guard starts from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Self

from snne_guard._atomic import atomic_output
from snne_guard._version import __version__
from snne_guard.decision.bound_settings import (
    ANSWER_SETTINGS,
    BOUND,
    NO_ANCHOR,
    NOT_A_GUARD_S,
    are_same,
    check_settings,
    plain,
)
from snne_guard.decision.cascade import Cascade
from snne_guard.decision.limits import accept_threshold
from snne_guard.decision.probability import ProbabilityMap
from snne_guard.decision.sealed import read_sealed, sealed
from snne_guard.decision.threshold import Threshold
from snne_guard.errors import ConfigurationError, InputError

__all__ = ["Calibration"]

_DATED = re.compile(r"[-@](19|20)\d\d-?\d\d-?\d\d$")
_KIND = "snne_guard.Calibration"
_FORMAT = 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was learnt from graded answers, bound to how these were drawn and scored.

    A guard that is given one decides by its threshold, and holds to its settings: it
    refuses to start with others, and at each call it accepts only what was scored as
    the graded answers were.

    Attributes:
        settings: What it was made for, by the names in ``BOUND``; besides them
            ``reply_models``, the names of the model that its replies carried, and
            ``temperature_unset``, True where the provider took no temperature.
            Without ``answer_temperature``, ``top_p``, ``max_tokens`` or ``stop``
            nobody knows with which one the graded answers were drawn, and none is
            compared; None: it was left to the model.
        threshold: Largest accepted ``u``, with its promise.
        refuse: ``u`` above which an answer is always refused, None for no such limit.
        cascade: The plan of rounds whose promise the threshold is, None where all
            members are drawn at once.
        probability: Members of the set, to what reads P(wrong) from ``u`` of as many.
        combination: What ``method="calibrated"`` was learnt as, for that method.
        reference: ``u`` of the graded answers, for a monitor to compare new ones with.
        tries: How often thresholds were made from the same labels, this one included.
            What is kept of several has the promise of none.
        labels: Digest of the labels, None where nobody has taken it.
        graders: Who graded, and how many answers.
        created: When it was made, as ISO 8601 in UTC.
        version: The version of snne-guard that made it.

    Raises:
        ConfigurationError: If the parts contradict each other, or the settings are not
            plain values.

    Example:
        >>> made = Calibration(
        ...     settings={"model": "m", "n": 5}, threshold=Threshold.fixed(0.4)
        ... )
        >>> made.check({"model": "m", "n": 5})
        ()
        >>> made.check({"model": "m", "n": 10})
        Traceback (most recent call last):
        ...
        snne_guard.errors.ConfigurationError: this guard differs from what its
        calibration was made for: n was 5, here it is 10. Make a calibration for these
        settings, or take this one all the same with allow_mismatch=True (snne-guard
        ask --allow-mismatch), which every assessment will say
    """

    settings: Mapping[str, Any]
    threshold: Threshold
    refuse: Threshold | None = None
    cascade: Cascade | None = None
    probability: Mapping[int, ProbabilityMap] = field(
        default_factory=dict[int, ProbabilityMap]
    )
    combination: Mapping[str, Any] | None = None
    reference: tuple[float, ...] = ()
    tries: int = 1
    labels: str | None = None
    graders: Mapping[str, int] = field(default_factory=dict[str, int])
    created: str = field(default_factory=_now)
    version: str = __version__

    def __post_init__(self) -> None:
        check_settings(self.settings)
        _ = self.limits
        self._check_cascade()
        for u in self.reference:
            if not 0 <= u <= 1:
                msg = f"expected a reference of u in [0, 1]; got {u!r}"
                raise ConfigurationError(msg)
        if isinstance(self.tries, bool) or self.tries < 1:
            msg = f"tries must be a whole number of at least 1; got {self.tries!r}"
            raise ConfigurationError(msg)
        settings = {name: plain(value) for name, value in self.settings.items()}
        maps = dict(self.probability)
        object.__setattr__(self, "settings", MappingProxyType(settings))
        object.__setattr__(self, "probability", MappingProxyType(maps))
        graders = dict(self.graders)
        object.__setattr__(self, "graders", MappingProxyType(graders))

    def _check_cascade(self) -> None:
        rounds, plan = self.settings.get("rounds"), self.cascade
        planned = None if plan is None else list(plan.rounds)
        if rounds is not None and list(rounds) != planned:
            msg = (
                "a calibration with rounds needs the plan that says when they end, "
                f"one for {list(rounds)}; got one for {planned}"
            )
            raise ConfigurationError(msg)
        if plan is not None and (rounds is None or plan.promise != self.threshold):
            msg = (
                "a calibration with a plan has its rounds among the settings, and its "
                "promise as the threshold"
            )
            raise ConfigurationError(msg)

    def threshold_of(self, members: int, /) -> Threshold:
        """Return the threshold for a set of so many members."""
        return (
            self.threshold if self.cascade is None else self.cascade.threshold(members)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from its fields: mappings that cannot be changed do not travel."""
        return (_restored, (self.to_dict(),))

    @property
    def limits(self) -> tuple[Threshold, float | None]:
        """The threshold for acceptance, and ``u`` above which is refused, if any."""
        if self.refuse is None:
            return self.threshold, None
        accept, refuse = accept_threshold((self.threshold, self.refuse))
        return accept or self.threshold, refuse

    @property
    def statement(self) -> str:
        """The promise, or why there is none, in plain words."""
        return (self.cascade or self.threshold).statement

    def guard_settings(self) -> dict[str, Any]:
        """Return the settings of a guard that it is for, itself among them.

        Not the prompt version, which the program says that sends the prompt, nor what
        the model itself is set up with or the similarity brings.

        Example:
            >>> made = Calibration(
            ...     settings={"method": "snne", "n": 5}, threshold=Threshold.fixed(0.4)
            ... )
            >>> settings = made.guard_settings()
            >>> settings.pop("calibration") is made, settings
            (True, {'n': 5, 'method': 'snne'})
        """
        names = [name for name in BOUND if name not in NOT_A_GUARD_S]
        found = {name: self.settings.get(name) for name in names}
        if self.combination is not None:
            found["method"] = "calibrated"
        given = {name: value for name, value in found.items() if value is not None}
        return {"calibration": self, **given}

    def differences(self, settings: Mapping[str, Any], /) -> dict[str, tuple[Any, Any]]:
        """Return what differs, by name: what it was made for, and what is here.

        Args:
            settings: What a guard has set, by names in ``BOUND``. Those that it does
                not know are left out: they are looked at in each call.
        """
        found: dict[str, tuple[Any, Any]] = {}
        for name in BOUND:
            if name not in settings or not self.binds(name):
                continue
            made, here = self._made_with(name), plain(settings[name])
            is_model = name == "model"
            same = self.is_model(here) if is_model else are_same(name, made, here)
            if not same:
                found[name] = (made, here)
        return found

    def _made_with(self, name: str) -> Any:  # noqa: ANN401 - of a setting
        made = self.settings.get(name)
        return NO_ANCHOR if name == "anchor" and made is None else made

    def binds(self, name: str, /) -> bool:
        """Return whether a setting by a name in ``BOUND`` is compared at all."""
        return name not in ANSWER_SETTINGS or name in self.settings

    def is_model(self, name: str | None, /) -> bool:
        """Return whether it is made for the model that a guard asks by a name.

        A setting may say who serves the model as well (``"openai:gpt-4.1"``).

        Args:
            name: What the guard calls it, None where it has no name.
        """
        made = self.settings.get("model")
        if name is None or made is None:
            return name is made
        return name in self._replies or made == name or made.endswith(f":{name}")

    def is_reply_of(self, name: str | None, /) -> bool:
        """Return whether a reply that carries the name of a model is from its own.

        Where the replies that it was made from carried names, it must be one of them:
        what a provider serves under one name changes. Else it may be the model's own
        with the day of a version behind it (``"gpt-4.1-2025-04-14"``).
        """
        if self._replies:
            return name in self._replies
        if name is None:
            return self.is_model(None)
        undated = _DATED.sub("", name)
        return any(map(self.is_model, (name, undated)))

    @property
    def _replies(self) -> list[str]:
        return self.settings.get("reply_models") or []

    def check(
        self, settings: Mapping[str, Any], /, *, allow_mismatch: bool = False
    ) -> tuple[str, ...]:
        """Refuse settings that it was not made for.

        Args:
            settings: As for ``differences``.
            allow_mismatch: Whether they are only named.

        Returns:
            The names of those that differ.

        Raises:
            ConfigurationError: Some differ; the message names them all.
        """
        found = self.differences(settings)
        if found and not allow_mismatch:
            told = "; ".join(
                f"{name} was {made!r}, here it is {here!r}"
                for name, (made, here) in found.items()
            )
            msg = (
                f"this guard differs from what its calibration was made for: {told}. "
                "Make a calibration for these settings, or take this one all the same "
                "with allow_mismatch=True (snne-guard ask --allow-mismatch), which "
                "every assessment will say"
            )
            raise ConfigurationError(msg)
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {
            "settings": dict(self.settings),
            "threshold": self.threshold.to_dict(),
            "refuse": None if self.refuse is None else self.refuse.to_dict(),
            "cascade": None if self.cascade is None else self.cascade.to_dict(),
            "probability": {
                str(members): found.to_dict()
                for members, found in self.probability.items()
            },
            "combination": None if self.combination is None else dict(self.combination),
            "reference": list(self.reference),
            "tries": self.tries,
            "labels": self.labels,
            "graders": dict(self.graders),
            "created": self.created,
            "version": self.version,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], /) -> Self:
        """Return what ``to_dict`` gave.

        Raises:
            InputError: A field is missing, unknown, of the wrong type or contradicts
                another one.
        """
        names = set(cls.__dataclass_fields__)
        if set(content) != names:
            msg = (
                "expected exactly the fields of a calibration; missing: "
                f"{sorted(names - set(content))}, unknown: "
                f"{sorted(set(content) - names)}"
            )
            raise InputError(msg)
        for name, kinds in _KINDS.items():
            if not isinstance(content[name], kinds) or content[name] is True:
                msg = f"expected another type of {name}, got {content[name]!r}"
                raise InputError(msg)
        refuse, cascade = content["refuse"], content["cascade"]
        try:
            return cls(
                **{name: content[name] for name in names - _READ},
                threshold=Threshold.from_dict(content["threshold"]),
                refuse=None if refuse is None else Threshold.from_dict(refuse),
                cascade=None if cascade is None else Cascade.from_dict(cascade),
                reference=tuple(map(float, content["reference"])),
                probability={
                    int(members): ProbabilityMap.from_dict(found)
                    for members, found in content["probability"].items()
                },
            )
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            msg = f"expected a calibration: {error}"
            raise InputError(msg) from error

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write it as JSON, whole or not at all, with a checksum of what it holds.

        Raises:
            OSError: The file cannot be written.
        """
        text = sealed(self.to_dict(), kind=_KIND, version=_FORMAT)
        with atomic_output(Path(path)) as write:
            write(text.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read what ``save`` wrote.

        Raises:
            InputError: The file is no JSON, as one that was cut off; it holds something
                else than a calibration; it is of a newer format; or it was changed
                since it was written.
            OSError: The file cannot be read.
        """
        raw = Path(path).read_bytes()
        try:
            return cls.from_dict(read_sealed(raw, kind=_KIND, version=_FORMAT))
        except InputError as error:
            msg = f"cannot take the calibration in {os.fspath(path)!r}: {error}"
            raise InputError(msg) from error


_KINDS: dict[str, Any] = {
    "settings": dict,
    "threshold": dict,
    "refuse": (dict, NoneType),
    "cascade": (dict, NoneType),
    "probability": dict,
    "combination": (dict, NoneType),
    "reference": list,
    "tries": int,
    "labels": str | None,
    "graders": Mapping,
    "created": str,
    "version": str,
}
_READ = {"threshold", "refuse", "cascade", "probability", "reference"}


def _restored(content: dict[str, Any]) -> Calibration:
    return Calibration.from_dict(content)
