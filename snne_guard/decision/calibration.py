"""Calibration: a threshold from graded answers, bound to the settings it holds for."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from snne_guard.checks import check_number
from snne_guard.decision.error_probability import ErrorProbability
from snne_guard.decision.threshold import Threshold
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.files import STRICT, first_problem, json_object, replace_file
from snne_guard.self_check import SelfCheck, form_of
from snne_guard.views import VIEWS


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What a file may hold of each setting."""

    __pydantic_config__: ClassVar = STRICT

    model: str | None = None
    n: int | None = None
    include_answer: bool | None = None
    temperature: float | None = None
    method: str | None = None
    similarity: str | None = None
    anchor: float | None = None
    self_check: str | None = None
    self_check_weight: float | None = None
    views: list[str] | None = None
    other_models: list[str] | None = None
    answer_temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    min_grounded: float | None = None
    grounding: str | None = None
    context_from: str | None = None


SETTINGS = tuple(each.name for each in fields(_Settings))
"""Names of the settings that a calibration is bound to."""

_PLAIN_OPTIONS = (
    *("n", "include_answer", "temperature", "method", "similarity"),
    *("min_grounded", "grounding"),
)

GUARD_OPTIONS = (*_PLAIN_OPTIONS, "self_check", "views")
"""Options of a guard that it takes from its calibration where they are not given."""

ANSWER_SETTINGS = ("answer_temperature", "top_p", "max_tokens", "stop")
"""Settings of the request for the answer. They are compared only where both the
calibration and the guard know them; None means that the model decides."""

_KIND, _FORMAT = "snne_guard.Calibration", 2
_DATE = re.compile(r"[-@](19|20)\d\d-?\d\d-?\d\d$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A threshold from graded answers, bound to how they were drawn and scored.

    A guard with other settings refuses to start with it. At run time the guard accepts
    an answer only if its replies were drawn and scored like the graded ones.

    Attributes:
        settings: How the graded answers were drawn and scored, as plain values under
            the names in ``SETTINGS``.
        threshold: The largest accepted ``u``, with its guarantee.
        refuse: ``u`` above which an answer is always refused; None for no such limit.
        probability: Turns ``u`` into the probability of an error; None if there were
            too few labels to learn it.
        reference: ``u`` of the graded answers, with which ``drift`` compares new ones.
        reply_models: Model names that the graded replies carried.
        other_reply_models: Model names that the replies of each other model carried, by
            the name that the guard gives it.
        temperature_set: Whether the provider accepted the sampling temperature.
        graders: The graders, and how many answers each has graded.

    Raises:
        ConfigurationError: If a setting is unknown, or ``refuse`` is below the
            threshold or above 1.

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
    other_reply_models: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )
    temperature_set: bool = True
    graders: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        if self.refuse is not None:
            least = max(self.threshold.value, 0)
            check_number(self.refuse, what="refuse", least=least, most=1)
        unknown = self.settings.keys() - {*SETTINGS}
        if unknown:
            msg = f"expected settings among {SETTINGS}, got {sorted(unknown)} as well"
            raise ConfigurationError(msg)
        # Copies, since the caller's may change later; plain, as read from a file.
        plain = json.loads(json.dumps(dict(self.settings)))
        object.__setattr__(self, "settings", plain)
        object.__setattr__(self, "graders", dict(self.graders))
        others = {name: tuple(of) for name, of in self.other_reply_models.items()}
        object.__setattr__(self, "other_reply_models", others)

    def check(self, settings: Mapping[str, Any], /) -> None:
        """Raise an error if a guard's settings differ from those it was made for.

        Names of ``SETTINGS`` that are missing are not compared.

        Raises:
            ConfigurationError: If some differ; the message names them all.
        """
        differ = [
            f"{name}={self.settings.get(name)!r}, here {name}={settings[name]!r}"
            for name in SETTINGS
            if name in settings and not self._same(name, settings[name])
        ]
        if differ:
            msg = (
                "the calibration was made for other settings: "
                f"{'; '.join(differ)}. Use these, or calibrate again"
            )
            raise ConfigurationError(msg)

    def _same(self, name: str, here: Any) -> bool:  # noqa: ANN401 - any setting
        if name == "model":
            return self._is_model(here)
        if name not in self.settings and name in ANSWER_SETTINGS:
            return True
        made = self.settings.get(name)
        if name == "stop":
            return _stops(made) == _stops(here)
        if name == "other_models":
            return sorted(made or ()) == sorted(here or ())
        if name == "views":
            return bool((made or []) == (here or []))
        return bool(made == here)

    def _is_model(self, name: str | None) -> bool:
        made = self.settings.get("model")
        if name is None or made is None:
            return name is made
        # A recording may say who serves the model as well: "openai:gpt-4.1".
        return name in (*self.reply_models, made) or str(made).endswith(f":{name}")

    def covers(
        self,
        *,
        n_used: int,
        method: str,
        similarity: str | None,
        models: Collection[str | None],
        temperature_set: bool,
        others: Mapping[str, str | None] | None = None,
    ) -> bool:
        """Compare a set of replies with those that the threshold was made for.

        ``models`` and ``others`` are the model names that its replies carried, None
        where one carried none; those of other models by the guard's names for them.
        """
        of_others = (others or {}).items()
        return (
            n_used == self._reply_set_size
            and method == self.settings.get("method")
            and similarity == self.settings.get("similarity")
            and temperature_set == self.temperature_set
            and all(map(self._is_reply, models))
            and sorted(others or {}) == sorted(self.settings.get("other_models") or ())
            and all(self._is_others(name, model) for name, model in of_others)
        )

    @property
    def _reply_set_size(self) -> int | None:
        n: int | None = self.settings.get("n")
        if n is None:
            return None
        apart = self.settings.get("include_answer") is False
        return n - apart - (self.settings.get("self_check") is not None)

    def _is_reply(self, name: str | None) -> bool:
        # What a provider serves under one name changes: where the graded replies
        # carried names, a reply must carry one of these.
        if self.reply_models:
            return name in self.reply_models
        if name is None:
            return True  # ``check`` has seen the name that the guard asks by
        return self._is_model(name) or self._is_model(_DATE.sub("", name))

    def _is_others(self, name: str, model: str | None) -> bool:
        if made := self.other_reply_models.get(name):
            return model in made
        return model is None or name in {model, _DATE.sub("", model)}

    @property
    def checksum(self) -> str:
        """The checksum of its file, by which logs name it."""
        checksum: str = _sealed(asdict(self))["checksum"]
        return checksum

    def p_wrong(self, u: float | None, /) -> float | None:
        """Return the estimated probability that an answer is wrong; None if unknown."""
        if self.probability is None or u is None:
            return None
        return self.probability(u)

    def guard_options(self) -> dict[str, Any]:
        """Return the options of ``GUARD_OPTIONS`` that a guard takes from it."""
        made = {name: self.settings.get(name) for name in _PLAIN_OPTIONS}
        options = {name: value for name, value in made.items() if value is not None}
        if self.settings.get("self_check") is not None:
            options["self_check"] = SelfCheck(
                form=form_of(self.settings["self_check"]) or "yes_no",
                prompt=self.settings["self_check"],
                weight=self.settings.get("self_check_weight", 0),
            )
        views = self.settings.get("views") or []
        if views and VIEWS.keys() >= {*views}:  # others only the user can give
            options["views"] = views
        return options

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write a JSON file with a checksum; it appears whole or not at all.

        Raises:
            OSError: If the file cannot be written.
        """
        text = json.dumps(_sealed(asdict(self)), indent=2, allow_nan=False)
        with replace_file(path) as stream:
            stream.write(text.encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read what ``save`` wrote.

        Raises:
            InputError: If the file is damaged, was changed since it was written, or
                is not a calibration.
            OSError: If the file cannot be read.
        """
        from pydantic import TypeAdapter, ValidationError

        content = Path(path).read_bytes()
        try:
            # By way of JSON: it has no tuples, so lists are taken for them.
            plain = json.dumps(_unsealed(json_object(content)))
            loaded = TypeAdapter(cls).validate_json(plain)
            TypeAdapter(_Settings).validate_json(json.dumps(loaded.settings))
        except ValidationError as error:
            problem = f"expected a Calibration; {first_problem(error)}"
        except InputError as error:
            problem = str(error)
        except RecursionError:
            problem = "its values are nested too deeply"
        else:
            return loaded
        msg = f"cannot read {os.fspath(path)!r}: {problem}"
        raise InputError(msg)


def _unsealed(sealed: Mapping[str, Any]) -> object:
    """Return the content of a file if it has not been changed."""
    content = sealed.get("content")
    made = sealed.get("format")
    if sealed.get("kind") == _KIND and isinstance(made, int) and made < _FORMAT:
        msg = (
            f"it has format {made}: samples are drawn in another way now, so its "
            "threshold does not hold. Calibrate again"
        )
        raise InputError(msg)
    if sealed != _sealed(content):
        msg = "it was not written by this version of snne-guard, or has been changed"
        raise InputError(msg)
    return content


def _sealed(content: object) -> dict[str, Any]:
    """Return the content of a file with its kind, format and checksum."""
    text = json.dumps(content, separators=(",", ":"))
    return {
        "kind": _KIND,
        "format": _FORMAT,
        "checksum": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "content": content,
    }


def _stops(value: str | Sequence[str] | None) -> list[str]:
    """Return stop texts as a sorted list, for their order means nothing."""
    return [value] if isinstance(value, str) else sorted(value or ())
