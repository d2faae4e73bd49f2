"""Every option of a guard, validated in one place."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import cycle, islice
from os import PathLike
from types import NoneType
from typing import Any, Self, TypedDict, get_args

from snne_guard.checks import (
    check_choice,
    check_function,
    check_names,
    check_number,
    check_whole,
)
from snne_guard.cost import Prices
from snne_guard.decision import Calibration, Threshold
from snne_guard.decision.calibration import GUARD_OPTIONS
from snne_guard.decision.policy import Policy
from snne_guard.errors import ConfigurationError
from snne_guard.scorers import Method, resolve_method
from snne_guard.self_check import SelfCheck
from snne_guard.similarity import resolve_similarity
from snne_guard.spans.cutting import cutters
from snne_guard.spans.documents import check_documents, source_of
from snne_guard.spans.grounding import resolve_grounding
from snne_guard.spans.scoring import resolve_span_similarity
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
from snne_guard.views import View, resolve_views

REFUSAL = "I am not certain enough of the answer to give one."
"""The default text of a refusal."""

_KINDS: dict[str, tuple[type, ...]] = {
    "calibration": (Calibration, NoneType),
    "observers": (list, tuple),
    "other_models": (list, tuple),
    "prices": (Prices, Mapping, NoneType),
    "refusal": (str, NoneType),
    "self_check": (bool, SelfCheck),
    "views": (list, tuple),
}
"""Types of the options that are neither numbers, words nor functions."""

_NOT_IN_REPLIES = frozenset({"hidden_states", "p_true_logprob", "token_importance"})
"""Inputs of methods that a guard cannot get from replies."""


def is_disabled() -> bool:
    """Read SNNE_GUARD_DISABLED, which turns every guard into its bare model.

    Only words that say so count: no other value may open a guard.
    """
    given = os.environ.get("SNNE_GUARD_DISABLED", "")
    return given.lower() in {"1", "true", "yes", "on"}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSettings:
    """The options of a guard, as ``SNNEGuard`` documents them, and one more.

    Attributes:
        other_models: Names of the other models; the doors have the models themselves.
        include_answer: Whether the answer is in the reply set; in the paper it is not.
        self_check_used: The self-check, None where there is none.
        span_similarity: What compares parts of the answer with the samples: a function,
            or ``"judge"`` for the guarded model; None without spans.
        grounding_name: The name of what compares the answer with its documents.
        ground_by: Its function; None for words and the judge.
        drawn_views: The views that samples are drawn in, in turn.
        sample_views: The view of each sample, None without views.
        policy: Turns an uncertainty into a decision.
        n_samples: Samples of the guarded model that are drawn beside the answer.
        reply_set_size: Replies of the reply set that are drawn.
        enough_replies: Replies that a reply set must have to be scored.
        methods: The method without the log-probabilities of every reply, and with them.
        similarities: Name and function of what each compares replies by.

    Raises:
        ConfigurationError: An option makes no sense, alone or with another one.
        InputError: The calibration's file is damaged.
    """

    n: int = 5
    threshold: float | tuple[float, float] | None = None
    calibration: Calibration | None = None
    on_uncertain: OnUncertain | Callable[[Assessment], Any] = "flag"
    fallback: Any = None
    refusal: str | None = REFUSAL
    on_error: OnError = "uncertain"
    method: str | Method = "auto"
    similarity: str | Similarity | None = None
    temperature: float = 1.0
    question: Callable[[Any], str | None] | None = None
    tool_calls: ToolCalls = "skip"
    min_replies: int | None = None
    schedule: Schedule = "concurrent"
    timeout: float | None = None
    sample_timeout: float | None = None
    max_concurrency: int | None = None
    sample_rate: float = 1.0
    prices: Prices | Mapping[str, Prices] | None = None
    observers: Sequence[Observer] = ()
    self_check: bool | SelfCheck = False
    views: Sequence[str | View] = ()
    spans: bool | str | SpanSimilarity = False
    span_threshold: float | None = None
    field_threshold: float | None = None
    decide_on: DecideOn = "answer"
    context: str | Sequence[Any] | Callable[[Any], Any] | None = None
    min_grounded: float | None = None
    grounding: str | Grounding = "words"
    other_models: Sequence[str] = ()
    include_answer: bool = True
    self_check_used: SelfCheck | None = field(init=False, repr=False)
    span_similarity: SpanSimilarity | str | None = field(init=False, repr=False)
    grounding_name: str = field(init=False, repr=False)
    ground_by: Grounding | None = field(init=False, repr=False)
    drawn_views: tuple[View, ...] = field(init=False, repr=False)
    sample_views: tuple[View | None, ...] = field(init=False, repr=False)
    policy: Policy = field(init=False, repr=False)
    n_samples: int = field(init=False, repr=False)
    reply_set_size: int = field(init=False, repr=False)
    enough_replies: int = field(init=False, repr=False)
    methods: tuple[Method, Method] = field(init=False, repr=False)
    similarities: tuple[tuple[str, Similarity], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # In this order, since each step relies on those before it: kinds first, so that
        # no later check fails on a wrong type; the self-check, which ``n`` counts; the
        # calibration, which sets the policy and may name the method; the views and the
        # other models, which may settle it; and the method last, when all that it
        # depends on is known.
        self._check_kinds()
        used = SelfCheck() if self.self_check is True else self.self_check
        self._set("self_check_used", used or None)
        self._check_numbers()
        self._set("drawn_views", resolve_views(self.views))
        in_turn = islice(cycle(self.drawn_views or (None,)), self.n_samples)
        self._set("sample_views", tuple(in_turn))
        self._set("policy", self._policy())
        self._set("span_similarity", self._span_similarity())
        name, ground_by = resolve_grounding(self.grounding)
        self._set("grounding_name", name)
        self._set("ground_by", ground_by)
        if self.calibration is not None and self.method == "auto":
            self._set("method", self.calibration.settings.get("method", "auto"))
        # Some views leave no log-probabilities, and those of two models do not compare.
        if (self.drawn_views or self.other_models) and self.method == "auto":
            self._set("method", "snne")
        self._check_method()

    @classmethod
    def given(cls, **options: Any) -> Self:  # noqa: ANN401 - each is checked
        """Return the options of a guard as a user gives them.

        Of those that a calibration is bound to, None is "not given": such an option is
        taken from the calibration if there is one, else its default holds.

        Raises:
            ConfigurationError: An option is unknown, or makes no sense.
            InputError: The calibration's file is damaged.
        """
        check_names(options, _names(cls), what="option")
        source = options.get("calibration")
        if isinstance(source, str | PathLike):
            source = Calibration.load(source)
        made = source.guard_options() if isinstance(source, Calibration) else {}
        chosen = {
            name: value
            for name, value in options.items()
            if value is not None or name not in GUARD_OPTIONS
        }
        return cls(**{**made, **chosen, "calibration": source})

    def options(self) -> dict[str, Any]:
        """Return the options by name, those of the calibration among them."""
        return {name: getattr(self, name) for name in _names(self)}

    @property
    def asks_functions(self) -> bool:
        """Whether a call begins with functions of the user, which may take their time.

        Such as a ``context`` that searches for documents.
        """
        return callable(self.context) or self.question is not None

    @property
    def withholds(self) -> bool:
        """Whether an answer is held back until it is decided on."""
        may_replace = self.policy.may_withhold or self.fallback is not None
        return may_replace and not is_disabled()

    def check_calibration(self, known: Mapping[str, Any], /) -> None:
        """Refuse to start with a calibration that was made for something else.

        ``known`` is the ``model`` and what the answer is drawn with, as far as that is
        known.
        """
        if self.calibration is None:
            return
        method, (name, _) = self.methods[True], self.similarities[True]
        self_check = self.self_check_used
        grounds = self.min_grounded is not None
        self.calibration.check(
            {
                **known,
                "min_grounded": self.min_grounded,
                "grounding": self.grounding_name if grounds else None,
                "context_from": source_of(self.context) if grounds else None,
                "n": self.n,
                "include_answer": self.include_answer,
                "temperature": self.temperature,
                "method": method.name,
                "similarity": name if method.compares_answers else None,
                "anchor": method.anchor(name) if self.include_answer else 0.0,
                "self_check": self_check and self_check.prompt,
                "self_check_weight": self_check and self_check.weight,
                "views": [view.name for view in self.drawn_views],
                "other_models": sorted(self.other_models),
            }
        )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_kinds(self) -> None:
        for name, kinds in _KINDS.items():
            _check_kind(getattr(self, name), *kinds, what=name)
        for observer in self.observers:
            if not callable(getattr(observer, "on_assessment", None)):
                msg = (
                    "an observer needs a method on_assessment(assessment); "
                    f"{type(observer).__name__} has none"
                )
                raise ConfigurationError(msg)
        for name in self.other_models:
            _check_kind(name, str, what="the name of another model")
        self._set("other_models", tuple(self.other_models))
        if len({*self.other_models}) < len(self.other_models):
            names = ", ".join(self.other_models)
            msg = f"expected other models of different names, got {names}"
            raise ConfigurationError(msg)
        check_choice(self.tool_calls, get_args(ToolCalls), what="tool_calls")
        check_choice(self.schedule, get_args(Schedule), what="schedule")
        check_choice(self.decide_on, get_args(DecideOn), what="decide_on")
        if self.question is not None:
            check_function(self.question, what="question")
        if not isinstance(self.on_uncertain, str):
            words = " or ".join(map(repr, get_args(OnUncertain)))
            what = f"on_uncertain, unless it is {words},"
            check_function(self.on_uncertain, what=what)

    def _check_numbers(self) -> None:
        others, self_check = len(self.other_models), bool(self.self_check_used)
        besides = [f"{others} other model{'s' * (others > 1)}"] * bool(others)
        besides += ["a self-check"] * self_check
        what = f"n, with {' and '.join(besides)}," if besides else "n"
        least = 2 + others + self_check + (not self.include_answer)
        check_whole(self.n, what=what, least=least)
        # A slip of the keyboard must not plan for so many draws that memory ends. Only
        # its message names the limit.
        check_whole(self.n, what=what, least=least, most=10_000)
        self._set("n_samples", self.n - 1 - others - self_check)
        self._set("reply_set_size", self.n_samples + others + self.include_answer)
        check_number(self.sample_rate, what="sample_rate", least=0, most=1)
        check_number(self.temperature, what="temperature", above=0)
        given = self.prices
        for prices in given.values() if isinstance(given, Mapping) else [given]:
            _check_kind(prices, Prices, NoneType, what="prices")
            for price in ("prompt", "completion", "cached", "cache_creation"):
                if (per_million := getattr(prices, price, None)) is not None:
                    check_number(per_million, what=f"the price {price}", least=0)
        for name in ("timeout", "sample_timeout"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), what=name, above=0)
        if self.field_threshold is not None:
            Threshold.fixed(self.field_threshold)
        if self.max_concurrency is not None:
            check_whole(self.max_concurrency, what="max_concurrency", least=1)
        if self.min_replies is not None:
            most = self.reply_set_size
            check_whole(self.min_replies, what="min_replies", least=2, most=most)
        half = math.ceil(self.reply_set_size / 2)
        self._set("enough_replies", self.min_replies or max(2, half))

    def _check_method(self) -> None:
        method = resolve_method(self.method, logprobs=True)
        other = resolve_method(self.method, logprobs=False)
        if other.needs_logprobs:
            other = other.without_logprobs or other
        self._set("methods", (other, method))
        if self.other_models and method.needs_logprobs:
            msg = (
                f"the method {method.name!r} needs log-probabilities, and those of two "
                "models do not compare: with other_models take one that needs none, "
                'such as "snne"'
            )
            raise ConfigurationError(msg)
        beyond = sorted(method.needs & _NOT_IN_REPLIES)
        if beyond:
            msg = (
                "expected a method that needs only replies, got "
                f"{method.name!r}, which needs {', '.join(beyond)}"
            )
            raise ConfigurationError(msg)
        given = self.similarity
        pairs = [
            resolve_similarity(each.default_similarity if given is None else given)
            for each in self.methods
        ]
        self._set("similarities", tuple(pairs))
        name, compare = self.similarities[True]
        method.check_similarity(compare, name=name)
        if (
            self.policy.threshold is not None
            and method.bounds(self.reply_set_size) is None
        ):
            msg = (
                "a threshold needs a method whose values are bounded, got "
                f"{method.name!r}, which has no u"
            )
            raise ConfigurationError(msg)

    def _span_similarity(self) -> SpanSimilarity | str | None:
        if self.spans is False:
            if self.span_threshold is not None:
                msg = "span_threshold has no effect with spans=False"
                raise ConfigurationError(msg)
            if self.min_grounded is None:
                for name, unset in (("context", None), ("grounding", "words")):
                    if getattr(self, name) != unset:
                        msg = (
                            f"{name} has no effect with spans=False and no min_grounded"
                        )
                        raise ConfigurationError(msg)
                return None
        cutters()  # so that a missing extra is an error here and not in a call
        if self.span_threshold is not None:
            Threshold.fixed(self.span_threshold)
        check_documents(self.context)
        if self.spans is False:
            return None
        given = None if self.spans is True else self.spans
        return given if given == "judge" else resolve_span_similarity(given)

    def _policy(self) -> Policy:
        limit: Any = self.threshold
        if self.calibration is not None:
            if limit is not None:
                msg = "give either threshold or calibration, not both"
                raise ConfigurationError(msg)
            if self.decide_on != "answer":
                msg = (
                    "a calibration is about whole answers: with "
                    f"decide_on={self.decide_on!r} give a threshold instead"
                )
                raise ConfigurationError(msg)
            limit = (self.calibration.threshold.value, self.calibration.refuse)
        if limit is None and self.decide_on != "answer":
            msg = f"decide_on={self.decide_on!r} has no effect without a threshold"
            raise ConfigurationError(msg)
        pair = limit if isinstance(limit, tuple | list) else (limit, None)
        if len(pair) != 2:  # noqa: PLR2004 - a pair
            msg = f"expected the pair (accept, refuse), got {len(pair)} values"
            raise ConfigurationError(msg)
        policy = Policy(
            threshold=pair[0],
            min_grounded=self.min_grounded,
            refuse_above=pair[1],
            on_uncertain=self.on_uncertain,
            on_error=self.on_error,
        )
        if self.on_uncertain == "fallback" and self.fallback is None:
            msg = 'on_uncertain="fallback" needs a fallback; got none'
            raise ConfigurationError(msg)
        return policy


def _names(settings: GuardSettings | type[GuardSettings]) -> list[str]:
    return [each.name for each in fields(settings) if each.init]


def _check_kind(value: object, *kinds: type, what: str) -> None:
    if not isinstance(value, kinds):
        words = " or ".join("None" if k is NoneType else k.__name__ for k in kinds)
        msg = f"expected {what} to be {words}, got {type(value).__name__}"
        raise ConfigurationError(msg)
