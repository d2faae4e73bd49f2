"""The options that all guards take, as a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from snne_guard.cost import Prices
from snne_guard.decision import Calibration
from snne_guard.scorers import Method
from snne_guard.self_check import SelfCheck
from snne_guard.types import (
    Assessment,
    DecideOn,
    Grounding,
    Observer,
    OnError,
    OnUncertain,
    Schedule,
    Similarity,
    SpanSimilarity,
    ToolCalls,
)
from snne_guard.views import View


class GuardOptions(TypedDict, total=False):
    """The options that all guards take; ``SNNEGuard`` says what each means.

    The types of a fallback and of other models differ from door to door, so they are
    not among them.
    """

    n: int | None
    threshold: float | tuple[float, float] | None
    calibration: Calibration | str | PathLike[str] | None
    on_uncertain: OnUncertain | Callable[[Assessment], Any]
    refusal: str | None
    on_error: OnError
    method: str | Method | None
    similarity: str | Similarity | None
    temperature: float | None
    question: Callable[[list[Any]], str | None] | None
    tool_calls: ToolCalls
    min_replies: int | None
    schedule: Schedule
    timeout: float | None
    sample_timeout: float | None
    max_concurrency: int | None
    sample_rate: float
    prices: Prices | Mapping[str, Prices] | None
    observers: Sequence[Observer]
    self_check: bool | SelfCheck | None
    views: Sequence[str | View] | None
    spans: bool | str | SpanSimilarity
    span_threshold: float | None
    field_threshold: float | None
    decide_on: DecideOn
    context: str | Sequence[Any] | Callable[[list[Any]], Any] | None
    min_grounded: float | None
    grounding: str | Grounding | None
