"""Sentences and fields of an answer: what samples and documents say of each."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from snne_guard.engine.protocol import Draws, Failure, Work
from snne_guard.engine.request import Request
from snne_guard.engine.state import CallState
from snne_guard.fields import score_fields
from snne_guard.fields.scoring import value_at
from snne_guard.similarity.json_values import NOT_JSON, read_json
from snne_guard.similarity.judge import judge_prompt
from snne_guard.spans import SpanJudge, score_spans
from snne_guard.spans.cutting import cut
from snne_guard.spans.grounding import ground, ground_values, weakest, with_support
from snne_guard.types import Field, FloatArray, Reply


def fields_of(call: CallState) -> Generator[Draws | Work, Any, None]:
    """Give each field of a structured answer its own uncertainty."""
    answer, reply_set = call.answer, call.reply_set
    assert answer is not None and reply_set is not None  # noqa: S101, PT018 - it is scored
    result: Any = yield Work(
        function=partial(_fields, call, (answer, *reply_set.samples)),
        deadline=call.deadline,
        quick=reply_set.are_short and call.request.context is None,
    )
    if isinstance(result, Failure):
        call.note_failure("fields", result.error, reason="fields_failed")
        result = ()
    call.fields = None if result is None else tuple(result)


def _fields(call: CallState, replies: Sequence[Reply]) -> list[Field] | None:
    """Return the fields of the first reply, None where it is no JSON."""
    answer, *samples = [_value_of(each, call.request) for each in replies]
    if not isinstance(answer, dict | list):
        return None
    found = score_fields(answer, samples, question=call.request.question)
    if context := call.request.context:
        said = [value_at(answer, each.path) for each in found]
        support = ground_values(said, context)
        return [replace(f, grounded=g) for f, g in zip(found, support, strict=True)]
    return found


def _value_of(reply: Reply, request: Request) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON that a reply is: its text, its calls, or what is in its only one.

    A call that is a form of the answer is what the application gets as an object.
    """
    if reply.tool_calls is None:
        return read_json(reply.text)
    calls = read_json(reply.tool_calls)
    is_form = request.structured and not request.calls_tools(reply)
    return calls[0]["args"] if is_form and len(calls) == 1 else calls


def _is_text(call: CallState) -> bool:
    """Recognise an answer that is a text, and nothing but that."""
    request, reply_set = call.request, call.reply_set
    has_calls = reply_set is None or reply_set.has_tool_calls
    return not (request.structured is True or request.schema or has_calls)


def grounding_of(call: CallState) -> Generator[Draws | Work, Any, None]:
    """Measure how much of the answer documents support."""
    settings, answer, context = call.settings, call.answer, call.request.context
    assert answer is not None  # noqa: S101 - drawn before
    if context is None or not context.strip():
        call.note("no_context")
        return
    if (
        not _is_text(call)
        or answer.unreadable
        or answer.refused
        or read_json(answer.text) is not NOT_JSON
    ):
        return
    by = settings.ground_by
    if settings.grounding_name == "judge":
        texts, judge = yield from _judge(call)

        def by(sentences: Sequence[str], _: str, /) -> FloatArray:
            # What is not mentioned, half for a sample, is nothing for a document.
            verdicts: FloatArray = judge(sentences, texts)[:, -1]
            return (2 * verdicts - 1).clip(0, 1)

    result: Any = yield Work(
        function=partial(ground, answer.text, context, by=by), deadline=call.deadline
    )
    if isinstance(result, Failure):
        call.note_failure("grounding", result.error, reason="grounding_failed")
        return
    call.supports, call.grounded = result, weakest(result)
    if result and result[0].grounded is None:
        call.note("other_language")


def spans_of(call: CallState) -> Generator[Draws | Work, Any, None]:
    """Give each part of a text that is delivered its own uncertainty."""
    reply_set, answer = call.reply_set, call.answer
    compare: Any = call.settings.span_similarity
    assert answer is not None and reply_set is not None  # noqa: S101, PT018 - it is scored
    if not _is_text(call) or not reply_set.samples:
        return
    samples = [sample.text for sample in reply_set.samples]
    if compare == "judge":
        texts, judge = yield from _judge(call)

        def compare(
            parts: Sequence[str], _: Sequence[str], /, *, question: str | None = None
        ) -> FloatArray:
            del question
            return judge(parts, texts)[:, : len(samples)]

    result: Any = yield Work(
        function=partial(
            score_spans,
            answer.text,
            samples,
            question=call.request.question,
            similarity=compare,
        ),
        deadline=call.deadline,
    )
    if isinstance(result, Failure):
        call.note_failure("spans", result.error, reason="spans_failed")
    else:
        call.spans = tuple(with_support(result, call.supports))


def _judge(
    call: CallState,
) -> Generator[Draws | Work, Any, tuple[list[str], SpanJudge]]:
    """Ask the guarded model, once, which texts support the parts of its answer.

    Return the texts, samples first, documents last, and what reads its verdicts.
    """
    settings, request, answer = call.settings, call.request, call.answer
    assert answer is not None  # noqa: S101 - it is judged
    text, texts = answer.text, list[str]()
    if settings.span_similarity == "judge" and call.reply_set is not None:
        texts += [sample.text for sample in call.reply_set.samples]
    if settings.grounding_name == "judge" and request.context is not None:
        texts.append(request.context)

    def prompt() -> str | None:
        parts = [text[start:end] for start, end in cut(text)]
        return judge_prompt(parts, texts, request.question) if parts else None

    asked_already = any(draw.role == "judge" for draw in call.drawn)
    # A question about the answer would act on the world as a sample would.
    if not asked_already and not request.side_effects:
        asked = yield Work(function=prompt, deadline=call.deadline)
        if isinstance(asked, str) and not call.is_late:
            yield from call.send((call.draw("judge", turns=(text, asked)),))
    replies = () if call.judgement is None else call.judgement.replies
    reply = replies[0].text if replies else ""
    return texts, SpanJudge(lambda _: reply)
