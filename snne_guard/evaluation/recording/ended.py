"""Replies that end at certain texts, whether or not the provider saw to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snne_guard.evaluation.data.prompts import cut
from snne_guard.evaluation.recording.drawn import Drawn
from snne_guard.sampling.reading import Logprobs, read_logprobs, spell
from snne_guard.types import Sample

__all__ = ["ended"]


def ended(drawn: Drawn, /, stops: Sequence[str]) -> Drawn:
    r"""Return what was drawn with each reply up to the first of some texts, stripped.

    A reply that loses text keeps the tokens that make up what is left, and their
    log-probabilities; it has none where they do not end where it ends, or nobody knows
    what they say. One that a token limit cut off behind that text is whole now. The
    reasons follow.

    Args:
        drawn: The answer and the samples.
        stops: Texts that end a reply.

    Example:
        >>> reply = Sample(text=" Paris\nQuestion: Who", finish_reason="length")
        >>> found = ended(Drawn(answer=reply, reasons=("answer_truncated",)), ["\n"])
        >>> found.answer.text, found.answer.finish_reason, found.reasons
        ('Paris', 'stop', ())
    """
    answer = None if drawn.answer is None else _ended(drawn.answer, stops)
    samples = tuple(_ended(sample, stops) for sample in drawn.samples)
    found = {
        "answer_empty": answer is not None and _is_empty(answer),
        "answer_truncated": answer is not None and answer.truncated,
        "empty_samples": any(map(_is_empty, samples)),
        "truncated_samples": any(sample.truncated for sample in samples),
    }
    kept = [code for code in drawn.reasons if found.get(code, True)]
    new = [code for code, holds in found.items() if holds]
    if any(reply.misaligned for reply in (answer, *samples) if reply is not None):
        new.append("logprobs_misaligned")
    return replace(
        drawn,
        answer=answer,
        samples=samples,
        reasons=tuple(dict.fromkeys((*kept, *new))),
    )


def _ended(reply: Sample, stops: Sequence[str]) -> Sample:
    if reply.tool_calls is not None:
        return reply
    text = cut(reply.text, stops)
    if text == reply.text.strip():
        return replace(reply, text=text)
    left = _left(reply, text)
    return replace(
        reply,
        text=text,
        finish_reason="stop",
        token_logprobs=left.values,
        tokens=left.tokens,
        misaligned=reply.misaligned or left.misaligned,
    )


def _left(reply: Sample, text: str) -> Logprobs:
    """Return the log-probabilities and the tokens of what is left of a reply."""
    known, tokens = reply.token_logprobs, reply.tokens
    if known is None:
        return Logprobs(None)
    if tokens is None or not text:
        return Logprobs(None, misaligned=True)
    pairs = zip(tokens, known, strict=True)
    entries = [{"token": token, "logprob": one} for token, one in pairs]
    found = read_logprobs(entries, text=text)
    # The last of them may reach beyond the text that ends it.
    whole = found.tokens is not None and spell(found.tokens, text)
    return found if whole else Logprobs(None, misaligned=True)


def _is_empty(reply: Sample) -> bool:
    return not reply.text and reply.tool_calls is None and not reply.reasoned
