"""What was drawn for one question, and how it stands in the line of a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from snne_guard._version import __version__
from snne_guard.evaluation.recording.questions import Question
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.evaluation.recording.token_texts import token_texts
from snne_guard.types import Cost, ResponseSet, Sample

__all__ = ["Drawn", "as_fields", "from_fields", "of_kind"]

_OF_OTHER_DRAWS = frozenset(
    {
        "main_answer",
        "samples",
        "main_logprobs",
        "token_logprobs",
        "main_tokens",
        "tokens",
        "settings",
        "drawn",
        "failed",
        "label",
        "label_order",
        "snne_guard",
    }
)
"""Fields that a question brings along where it has been recorded before."""
_OF_THE_FAILURE = frozenset({"samples_failed", "samples_late"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The answer and the samples of one question, as far as they came.

    Attributes:
        answer: The delivered answer, None where it failed.
        samples: Further draws, never the one that is the answer.
        reasons: What was not as usual, as reason codes.
        cost: What it took.
        error: Why something is missing, None where nothing is or nobody knows.
    """

    answer: Sample | None = None
    samples: tuple[Sample, ...] = ()
    reasons: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    error: BaseException | None = field(default=None, compare=False)

    @classmethod
    def from_responses(cls, responses: ResponseSet, /) -> Drawn:
        """Return what a sampler drew, such as ``AsyncOpenAISampler``."""
        return cls(
            answer=responses.answer,
            samples=responses.samples,
            reasons=responses.reasons,
            cost=responses.cost,
            error=responses.errors[-1] if responses.errors else None,
        )

    def __add__(self, later: Drawn) -> Drawn:
        """Return both together: the first answer, all samples, the last error."""
        kept = tuple(code for code in self.reasons if code not in _OF_THE_FAILURE)
        return Drawn(
            answer=self.answer or later.answer,
            samples=(*self.samples, *later.samples),
            reasons=tuple(dict.fromkeys((*kept, *later.reasons))),
            cost=self.cost + later.cost,
            error=later.error,
        )

    def is_complete(self, n_samples: int) -> bool:
        """Return whether nothing is missing."""
        return self.answer is not None and len(self.samples) >= n_samples

    def why(self) -> str:
        """Return what is to be said about what is missing."""
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return ", ".join(self.reasons) or "too few replies came"


def as_fields(
    question: Question, drawn: Drawn, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a recording; those of the question stay as they are.

    Without an answer there is no field for it. What belongs to other draws of the
    same question, such as the label of another answer, is left out.
    """
    samples = drawn.samples
    carried = {
        name: value
        for name, value in question.fields.items()
        if name not in _OF_OTHER_DRAWS and (name, value) != ("id", None)
    }
    fields: dict[str, Any] = {"id": question.id, **carried}
    if drawn.answer is not None:
        fields["main_answer"] = _text(drawn.answer)
    fields["samples"] = [_text(sample) for sample in samples]
    if drawn.answer is not None and (known := _logprobs(drawn.answer)) is not None:
        fields["main_logprobs"] = known
    logprobs = [_logprobs(sample) for sample in samples]
    if any(known is not None for known in logprobs):
        fields["token_logprobs"] = logprobs
    if drawn.answer is not None and (said := _tokens(drawn.answer)) is not None:
        fields["main_tokens"] = said
    tokens = [_tokens(sample) for sample in samples]
    if any(said is not None for said in tokens):
        fields["tokens"] = tokens
    fields["settings"] = dict(settings)
    fields["drawn"] = _about(drawn)
    return fields


def from_fields(fields: Mapping[str, Any]) -> Drawn:
    """Return what the fields of a line of ours say was drawn, reasons and cost too."""
    recording = Recording.from_dict({"main_answer": "", **fields})
    about: Mapping[str, Any] = recording.extra["drawn"]
    known = recording.token_logprobs or (None,) * len(recording.samples)
    main_tokens, *tokens = token_texts(recording)
    members = list(zip(recording.samples, known, tokens, strict=True))
    if answered := "main_answer" in fields:
        main = (recording.main_answer, recording.main_logprobs, main_tokens)
        members.insert(0, main)
    ends: Sequence[str | None] = about["finish_reasons"]
    kinds: Sequence[str | None] = about.get("kinds") or [None] * len(members)
    # Who drew what is not kept, only who drew at all.
    models: list[str | None] = [*about["models"], *(None for _ in members)]
    replies = [
        of_kind(
            Sample(
                text=text,
                token_logprobs=logprobs,
                finish_reason=end,
                model=model,
                tokens=said,
            ),
            kind,
        )
        for (text, logprobs, said), end, model, kind in zip(
            members, ends, models, kinds, strict=False
        )
    ]
    return Drawn(
        answer=replies.pop(0) if answered else None,
        samples=tuple(replies),
        reasons=tuple(about["reasons"]),
        cost=Cost(**about["cost"]),
    )


def of_kind(reply: Sample, kind: str | None, /) -> Sample:
    """Return a reply whose text is known as the kind of reply that it was.

    Args:
        reply: It, as a recording has it.
        kind: ``"refused"``, ``"tool_calls"``, ``"unread"``, ``"reasoned"`` or None.
    """
    if kind == "tool_calls":
        return replace(reply, tool_calls=reply.text)
    return replace(
        reply,
        refused=kind == "refused",
        unread=kind == "unread",
        reasoned=kind == "reasoned",
    )


def _kind(reply: Sample) -> str | None:
    if reply.refused:
        return "refused"
    if reply.tool_calls is not None:
        return "tool_calls"
    if reply.unread:
        return "unread"
    return "reasoned" if reply.reasoned and not reply.text.strip() else None


def _about(drawn: Drawn) -> dict[str, Any]:
    members = [m for m in (drawn.answer, *drawn.samples) if m is not None]
    kinds = [_kind(member) for member in members]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "models": list(dict.fromkeys(m.model for m in members if m.model)),
        "finish_reasons": [member.finish_reason for member in members],
        **({"kinds": kinds} if any(kinds) else {}),
        "reasons": list(drawn.reasons),
        "cost": drawn.cost.to_dict(),
        "version": __version__,
    }


def _text(sample: Sample) -> str:
    # What an answer that calls tools does is in the calls.
    return sample.text if sample.tool_calls is None else sample.tool_calls


def _logprobs(sample: Sample) -> list[float] | None:
    known = sample.token_logprobs
    # JSON has no word for infinity.
    if not known or not all(map(math.isfinite, known)):
        return None
    return list(known)


def _tokens(sample: Sample) -> list[str] | None:
    # They go with their log-probabilities, and calls are not written as they came.
    if sample.tokens is None or sample.tool_calls or _logprobs(sample) is None:
        return None
    return list(sample.tokens)
