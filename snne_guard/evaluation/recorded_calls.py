"""How a recording was drawn: as ``record`` writes it down, and as it is read back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import cycle
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from snne_guard.cost import RequestCost
from snne_guard.engine.reading import is_complete, is_refused
from snne_guard.engine.reply_set import compared_text
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.jsonl import checked
from snne_guard.evaluation.recordings import Recording
from snne_guard.settings import GuardSettings
from snne_guard.text import is_visible, without_reasoning
from snne_guard.types import Assessment, Reply

DRAWN = frozenset(
    {
        *("main_answer", "samples", "main_logprobs", "token_logprobs", "main_tokens"),
        *("tokens", "self_check", "label", "settings", "drawn", "snne_guard"),
        *("sentences", "sentence_labels", "hidden_states", "token_importance"),
        *("p_true_logprob", "sample_models"),
    }
)
"""Fields of a recording that are about its replies; no question brings them."""

PER_REPLY = ("hidden_states", "token_importance")
"""Further fields of a recording with an entry for each reply, the answer's first."""

PLAIN = "plain"
"""The view in which samples are drawn without views."""


def drawing_of(settings: GuardSettings) -> dict[str, Any]:
    """Return the settings of a guard's draws, as recordings have them."""
    return {
        "temperature": settings.temperature,
        "samples": settings.n_samples,
        "self_check": settings.self_check_used and settings.self_check_used.prompt,
        "views": [view.name for view in settings.drawn_views] or None,
        "other_models": [*settings.other_models] or None,
    }


def drawn_fields(
    drawn: Assessment | Exception,
    *,
    settings: Mapping[str, Any],
    shard: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a recording that its draws bring; none without an answer."""
    if isinstance(drawn, Exception) or drawn.answer is None:
        return {}
    answer, samples = drawn.answer, drawn.samples
    replies = (answer, *samples)
    others = [sample.other_model for sample in samples]
    of_others = {name: _names(samples, name) for name in others if name}
    self_check = None if "self_check_unknown" in drawn.reasons else drawn.self_check
    return {
        "main_answer": compared_text(answer),
        "samples": [compared_text(sample) for sample in samples],
        "main_logprobs": answer.token_logprobs,
        "token_logprobs": [sample.token_logprobs for sample in samples],
        "main_tokens": answer.tokens,
        "tokens": [sample.tokens for sample in samples],
        **({"sample_models": others} if of_others else {}),
        "self_check": self_check,
        "settings": settings,
        "drawn": {
            **({} if shard is None else {"shard": shard}),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "models": _names(replies, None),
            **({"other_models": of_others} if of_others else {}),
            "finish_reasons": [reply.finish_reason for reply in replies],
            "kinds": [_kind(reply) for reply in replies],
            "reasons": [why for why in drawn.reasons if why != "no_threshold"],
            "cost": drawn.cost.to_dict(),
            "requests": [each.to_dict() for each in drawn.requests],
        },
    }


def _names(replies: Iterable[Reply], other: str | None) -> list[str]:
    """Return the names that the replies of one model carried."""
    return sorted({r.model for r in replies if r.model and r.other_model == other})


def _kind(reply: Reply) -> str | None:
    """Return the kind of a reply that is not plain text."""
    if reply.refused:
        return "refused"
    if reply.tool_calls is not None:
        return "tool_calls"
    return "unreadable" if reply.unreadable else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HowDrawn:
    """What a recording says about its draws, apart from the question and the replies.

    Lists with an entry per reply have the answer first, and None for what is unknown.
    """

    temperature: float = 1.0  # of the samples
    views: tuple[str, ...] = ()  # which the samples take in turn
    models: tuple[str, ...] = ()  # as the replies named theirs
    other_models: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )  # as the replies of each other model named theirs
    reasons: tuple[str, ...] = ()  # what was unusual
    finish_reasons: tuple[str | None, ...] | None = None  # of each reply
    kinds: tuple[str | None, ...] | None = None  # of each reply that is no plain text
    requests: tuple[RequestCost, ...] = ()  # what each request took
    shard: Annotated[str, Field(pattern=r"^\d{1,6}/\d{1,6}$")] | None = None


_HOW_DRAWN = TypeAdapter(HowDrawn)


def how_drawn(recording: Recording, /) -> HowDrawn:
    """Return the draws of a recording, if what it says of them makes sense."""
    settings, drawn = recording.settings or {}, recording.extra.get("drawn")
    given = drawn if isinstance(drawn, dict) else {}
    known = {name: settings.get(name) for name in ("temperature", "views")}
    given = given | {name: value for name, value in known.items() if value is not None}
    try:
        return checked(_HOW_DRAWN, given)
    except InputError as error:
        msg = f"recording {recording.id!r}: {error}"
        raise InputError(msg) from error


def recorded_replies(recording: Recording, /) -> tuple[Reply, list[Reply]]:
    """Return the recorded answer and samples as a guard would have received them.

    Reasoning at the start of a text goes, and with it the reply's log-probabilities,
    which are those of other tokens.
    """
    drawn = how_drawn(recording)
    recorded = (recording.main_answer, *recording.samples)
    texts = [*map(without_reasoning, recorded)]
    unknown = (None,) * len(texts)
    logprobs = (recording.main_logprobs, *(recording.token_logprobs or unknown[1:]))
    details = [drawn.finish_reasons or unknown, drawn.kinds or unknown]
    if any(len(each) != len(texts) for each in details):
        msg = (
            f'expected "finish_reasons" and "kinds" of recording {recording.id!r} to '
            f"be lists of {len(texts)} texts or nulls"
        )
        raise InputError(msg)
    others = (None, *(recording.sample_models or unknown[1:]))
    # Neither the answer nor another model has a view; samples take theirs in turn.
    turns = cycle(drawn.views or [None])
    answer, *samples = [
        Reply(
            text="" if kind == "tool_calls" else text,
            token_logprobs=(each or None) if text == recorded[place] else None,
            finish_reason=end,
            # Recordings of other programs do not say how a reply ended.
            truncated=end is not None and not (is_complete(end) or is_refused(end)),
            refused=kind == "refused" or is_refused(end),
            tool_calls=text if kind == "tool_calls" else None,
            unreadable=not is_visible(text) or kind == "unreadable",
            view=next(turns) if place and other is None else None,
            other_model=other,
        )
        for place, (text, each, end, kind, other) in enumerate(
            zip(texts, logprobs, *details, others, strict=True)
        )
    ]
    return answer, samples


def check_same_settings(
    before: object, now: object, *, name: str | os.PathLike[str]
) -> None:
    """Check that two parts of a recording have the same settings."""
    first = before if isinstance(before, dict) else {}
    second = now if isinstance(now, dict) else {}
    differ = [
        f"{name} was {first.get(name)!r}, here it is {second.get(name)!r}"
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]
    if differ:
        msg = f"{os.fspath(name)} was drawn with other settings: {'; '.join(differ)}"
        raise ConfigurationError(msg)


# -- Recordings of the same questions by two models, joined without a call ------------


class OtherRecording:
    """Another model's answers to the same questions, each to stand for a sample.

    Attributes:
        name: What the model is called, by the settings of its recordings.
        matched: How many questions have been joined.
        unmatched: How many were left out, since it has none of their id and text.
        unused: How many of its own were left out.
    """

    def __init__(self, rows: Iterable[Recording], /) -> None:
        self._answers = {row.id: row for row in rows}
        settings = [row.settings or {} for row in self._answers.values()]
        if not settings or not settings[0].get("model"):
            msg = "expected the other recording's settings to name the model, got none"
            raise InputError(msg)
        self.name = str(settings[0]["model"])
        self.matched = self.unmatched = self.unused = 0

    def joined(self, recordings: Iterable[Recording]) -> Iterator[Recording]:
        """Yield those whose question it has too, with its answer as the last sample."""
        self.matched = self.unmatched = 0
        for row in recordings:
            if self.name in ((row.settings or {}).get("model"), *row.other_models):
                msg = f"recording {row.id!r} has replies of {self.name!r} already"
                raise InputError(msg)
            other = self._answers.get(row.id)
            if other is None or other.prompt != row.prompt:
                self.unmatched += 1
            else:
                self.matched += 1
                yield _joined(row, other, self.name)
        self.unused = len(self._answers) - self.matched
        if not self.matched:
            msg = f"no question has its id and text in the recording of {self.name!r}"
            raise InputError(msg)


def _joined(row: Recording, other: Recording, name: str) -> Recording:
    n = len(row.samples)
    known = {field: row.extra.get(field) for field in PER_REPLY}
    lists = {field: each for field, each in known.items() if isinstance(each, list)}
    longer = {field: [*each, None] for field, each in lists.items()}
    return replace(
        row,
        samples=(*row.samples, other.main_answer),
        token_logprobs=row.token_logprobs and (*row.token_logprobs, None),
        sample_models=(*(row.sample_models or (None,) * n), name),
        extra={**row.extra, **longer, "drawn": _drawn(row, other, name)},
    )


def _drawn(row: Recording, other: Recording, name: str) -> Mapping[str, Any]:
    """Return the draws of both: how each reply ended, and what each request took."""
    here, there = how_drawn(row), how_drawn(other)
    unknown = (None,) * (1 + len(row.samples))
    answers = [
        {**one.to_dict(), "role": "sample", "other_model": name}
        for one in there.requests
        if one.role == "answer"
    ]
    given = row.extra.get("drawn")
    return {
        **(given if isinstance(given, dict) else {}),
        "finish_reasons": [
            *(here.finish_reasons or unknown),
            there.finish_reasons[0] if there.finish_reasons else None,
        ],
        "kinds": [*(here.kinds or unknown), there.kinds[0] if there.kinds else None],
        "requests": [*(one.to_dict() for one in here.requests), *answers],
        "other_models": {**here.other_models, name: there.models},
    }
