"""Whether recordings were all drawn in one way, and in which."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from snne_guard.assess.binding import TEMPERATURE_UNSET
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.sampling.options import ANSWER_OPTIONS, AnswerSettings, AnswerValue

__all__ = ["DrawnAlike", "drawn_alike", "named", "reasons_of", "reply_models"]

_ALIKE = (
    "model",
    "prompt_version",
    "system",
    "temperature",
    "answer_temperature",
    "top_p",
    "max_tokens",
    "stop",
    "completion",
)
"""Settings on which it depends how often an answer is wrong, or how far answers lie
apart. Seeds and where questions come from are none of them."""

_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnAlike:
    """How recordings were drawn.

    Attributes:
        model: Name of the model, None where no recording says it.
        prompt_version: The user's name for the prompt, None for none.
        temperature: Of the samples.
        temperature_unset: Whether the provider did not take it.
        answer_settings: What the answers were drawn with, as far as the recordings say.
        reply_models: Names of the model that the replies carried.
        n_samples: Samples of each.
        known: Whether the recordings say how they were drawn at all.
    """

    model: str | None
    prompt_version: str | None
    temperature: float
    temperature_unset: bool = False
    answer_settings: AnswerSettings = field(
        default_factory=dict[str, frozenset[AnswerValue]]
    )
    reply_models: tuple[str, ...]
    n_samples: int
    known: bool


def drawn_alike(
    recordings: Sequence[Recording], /, *, n_samples: int | None = None
) -> DrawnAlike:
    """Return how all recordings were drawn.

    Args:
        recordings: At least one.
        n_samples: Samples that are needed of each; None for as many as there are.

    Raises:
        InputError: They were not all drawn in one way; the message lists what differs.
            One has too few samples.

    Example:
        >>> fields = {"question": "?", "main_answer": "a", "samples": ["a", "b"]}
        >>> drawn_alike(
        ...     [
        ...         Recording.from_dict(
        ...             {**fields, "id": "1", "settings": {"model": "m"}}
        ...         ),
        ...         Recording.from_dict(
        ...             {**fields, "id": "2", "settings": {"model": "k"}}
        ...         ),
        ...     ]
        ... )
        Traceback (most recent call last):
        ...
        snne_guard.errors.InputError: expected recordings that were all drawn in one
        way; they differ in model: "m" (1), "k" (1)
    """
    found: dict[str, Counter[str]] = {
        name: Counter(_shown(row, name) for row in recordings) for name in _ALIKE
    }
    found["temperature taken"] = Counter(
        json.dumps(TEMPERATURE_UNSET not in reasons_of(row)) for row in recordings
    )
    if n_samples is None:
        found["samples"] = Counter(str(len(row.samples)) for row in recordings)
    told = [
        f"{name}: {', '.join(f'{value} ({n})' for value, n in values.most_common())}"
        for name, values in found.items()
        if len(values) > 1
    ]
    if told:
        msg = (
            "expected recordings that were all drawn in one way; they differ in "
            f"{'; '.join(told)}"
        )
        raise InputError(msg)
    settings = recordings[0].settings or {}
    return DrawnAlike(
        model=_text(settings, "model"),
        prompt_version=_text(settings, "prompt_version"),
        temperature=_number(settings, "temperature", 1.0),
        temperature_unset=TEMPERATURE_UNSET in reasons_of(recordings[0]),
        answer_settings={
            name: values
            for name in ANSWER_OPTIONS
            if (values := _of_answers(recordings, name))
        },
        reply_models=tuple(
            dict.fromkeys(name for row in recordings for name in reply_models(row))
        ),
        n_samples=_enough(recordings, n_samples),
        known=recordings[0].settings is not None,
    )


def named(
    alike: DrawnAlike, /, *, model: str | None = None, prompt_version: str | None = None
) -> DrawnAlike:
    """Return how recordings were drawn, with what they do not say themselves.

    Args:
        alike: How they were drawn, as far as they say it.
        model: Name of the model, None where the user says none.
        prompt_version: The user's name for the prompt, likewise.

    Raises:
        ConfigurationError: The recordings say something else.

    Example:
        >>> row = Recording(id="1", question="?", main_answer="a", samples=("a",))
        >>> named(drawn_alike([row]), model="mine").model
        'mine'
    """
    return replace(
        alike,
        model=_either("model", alike.model, model),
        prompt_version=_either("prompt_version", alike.prompt_version, prompt_version),
    )


def _either(name: str, recorded: str | None, said: str | None) -> str | None:
    if said is not None and recorded not in {None, said}:
        msg = (
            f"the recordings say {name} {recorded!r}, and not {said!r}: a calibration "
            "is bound to what they were drawn with"
        )
        raise ConfigurationError(msg)
    return recorded if said is None else said


def reply_models(recording: Recording, /) -> list[str]:
    """Return the names of models that the replies of a recording carried."""
    return _listed(recording, "models")


def reasons_of(recording: Recording, /) -> list[str]:
    """Return what was not as usual when a recording was drawn, as reason codes."""
    return _listed(recording, "reasons")


def _listed(recording: Recording, name: str) -> list[str]:
    drawn: Any = recording.extra.get("drawn")
    about = cast("dict[str, Any]", drawn) if isinstance(drawn, dict) else {}
    words: Any = about.get(name)
    if not isinstance(words, list):
        return []
    return [word for word in cast("list[object]", words) if isinstance(word, str)]


def _enough(recordings: Sequence[Recording], wanted: int | None) -> int:
    if wanted is None:
        return len(recordings[0].samples)
    few = [row for row in recordings if len(row.samples) < wanted]
    if few:
        msg = (
            f"expected at least {wanted} samples of each question; {len(few)} have "
            f"fewer, such as {few[0].id!r} with {len(few[0].samples)}"
        )
        raise InputError(msg)
    return wanted


def _shown(recording: Recording, name: str) -> str:
    settings = recording.settings
    if settings is None:
        return "not said"
    text = json.dumps(settings.get(name), ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _text(settings: Mapping[str, Any], name: str) -> str | None:
    value = settings.get(name)
    if value is not None and not isinstance(value, str):
        msg = f'expected "{name}" in the settings of a recording to be a text'
        raise InputError(msg)
    return value


def _number(settings: Mapping[str, Any], name: str, otherwise: object) -> float:
    value: Any = settings.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f'expected "{name}" in the settings of a recording to be a number'
        raise InputError(msg)
    return float(value)


def _of_answers(recordings: Sequence[Recording], name: str) -> frozenset[AnswerValue]:
    said = [row.settings or {} for row in recordings]
    if not all(name in settings for settings in said):
        return frozenset()
    value: Any = said[0][name]
    found = ANSWER_OPTIONS[name].values(value)
    if not found:
        kind = "texts" if name == "stop" else "a number"
        msg = f'expected "{name}" in the settings of a recording to be {kind} or null'
        raise InputError(msg)
    return found
