"""Questions without an answer, and replies that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snne_guard.evaluation.grading.squad import squad_normalised

if TYPE_CHECKING:
    from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["ABSTENTIONS", "is_abstention", "is_unanswerable"]

ABSTENTIONS = frozenset(
    {
        "",
        "answer is not in context",
        "answer is unknown",
        "answer unknown",
        "can not be answered",
        "can not be determined",
        "cannot answer",
        "cannot be answered",
        "cannot be determined",
        "cannot determine",
        "cant answer",
        "cant be answered",
        "cant be determined",
        "context does not say",
        "dont know",
        "i am not sure",
        "i cannot answer",
        "i cant answer",
        "i do not know",
        "i dont know",
        "im not sure",
        "insufficient information",
        "it is unknown",
        "na",
        "no answer",
        "not answerable",
        "not enough information",
        "not in context",
        "not known",
        "not mentioned",
        "not provided",
        "not specified",
        "not stated",
        "question cannot be answered",
        "question is unanswerable",
        "this question cannot be answered",
        "unanswerable",
        "unknown",
    }
)
"""Whole replies, normalised as SQuAD does, that decline to answer."""


def is_abstention(answer: str, /) -> bool:
    """Return whether a reply says that there is no answer, and nothing else.

    The whole reply, normalised as SQuAD does, must be one of ``ABSTENTIONS``; so a
    reply that goes on to answer is none. An empty reply declines to answer.

    Example:
        >>> is_abstention("Unknown."), is_abstention("Unknown, perhaps Paris.")
        (True, False)
    """
    return squad_normalised(answer.replace("\u2019", "'")) in ABSTENTIONS


def is_unanswerable(recording: Recording, /) -> bool:
    """Return whether a recording says that its question has no right answer.

    It does so with ``is_impossible`` true, or with references that are known to be
    none: ``"answers": []``. No field ``answers`` at all, and ``"is_impossible":
    false``, say nothing of the kind.

    Example:
        >>> from snne_guard.evaluation import Recording
        >>> fields = {"id": "1", "question": "?", "main_answer": "x", "samples": []}
        >>> is_unanswerable(Recording.from_dict({**fields, "answers": []}))
        True
    """
    impossible = recording.extra.get("is_impossible")
    return impossible is True or (recording.answers == () and impossible is not False)
