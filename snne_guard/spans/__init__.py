"""Which sentences of a long answer the samples support.

``score_spans`` gives each part of an answer its own uncertainty; a guard does it with
``spans=True``. ``render_marks`` shows what is uncertain.
"""

from snne_guard.similarity.judge import SpanJudge
from snne_guard.spans.rendering import render_marks
from snne_guard.spans.scoring import calibrate_spans, score_spans

__all__ = ["SpanJudge", "calibrate_spans", "render_marks", "score_spans"]
