"""Each part of a delivered text given an uncertainty of its own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from snne_guard.engine.protocol import Draws, Failure, Work
from snne_guard.engine.state import CallState
from snne_guard.similarity.judge import judge_prompt
from snne_guard.spans import SpanJudge, score_spans
from snne_guard.spans.cutting import cut
from snne_guard.types import SpanSimilarity

__all__ = ["score_spans_of"]


def score_spans_of(call: CallState, /) -> Generator[Draws | Work, Any, None]:
    """Give each part of a text that is delivered its own uncertainty, if wanted."""
    request, reply_set, compare = (
        call.request,
        call.reply_set,
        call.settings.span_similarity,
    )
    answer = call.answer
    assert answer is not None and reply_set is not None  # noqa: S101, PT018 - it is scored
    is_text = not (request.structured or request.schema or reply_set.has_tool_calls)
    if compare is None or not is_text or not reply_set.samples:
        return
    text, samples = answer.first.text, [sample.text for sample in reply_set.samples]
    if compare == "judge":
        compare = yield from _judge(call, text, samples)
    result: Any = yield Work(
        function=partial(
            score_spans,
            text,
            samples,
            question=request.question,
            context=request.context,
            similarity=compare,
        ),
        deadline=call.deadline,
    )
    if isinstance(result, Failure):
        call.failed("spans", result.error, reason="spans_failed")
    else:
        call.spans = tuple(result)


def _judge(
    call: CallState, text: str, samples: Sequence[str]
) -> Generator[Draws | Work, Any, SpanSimilarity]:
    """Ask the guarded model which samples support the parts of its answer."""
    context, question = call.request.context, call.request.question
    texts = [*samples] if context is None else [*samples, context]

    def prompt() -> str | None:
        parts = [text[start:end] for start, end in cut(text)]
        return judge_prompt(parts, texts, question) if parts else None

    asked = yield Work(function=prompt, deadline=call.deadline)
    if isinstance(asked, str) and not call.is_late:
        yield from call.send((call.draw("judge", turns=(text, asked)),))
    replies = () if call.judgement is None else call.judgement.replies
    reply = replies[0].text if replies else ""
    return SpanJudge(lambda _: reply)
