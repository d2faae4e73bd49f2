"""Which sentences of a long answer the samples bear out.

``score_spans`` gives each part of an answer its own uncertainty; a guard does it with
``spans=True``. ``render_marks`` shows what is uncertain.
"""

from snne_guard.spans.cutting import cut, cutters
from snne_guard.spans.judging import SpanJudge, judge_prompt
from snne_guard.spans.matching import NLIMatch, word_match
from snne_guard.spans.rendering import MarkedForm, render_marks
from snne_guard.spans.scoring import (
    calibrate_spans,
    labelled_spans,
    resolve_span_similarity,
    score_spans,
)

__all__ = [
    "MarkedForm",
    "NLIMatch",
    "SpanJudge",
    "calibrate_spans",
    "cut",
    "cutters",
    "judge_prompt",
    "labelled_spans",
    "render_marks",
    "resolve_span_similarity",
    "score_spans",
    "word_match",
]
