"""The graders by name, and how an option becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from types import MappingProxyType
from typing import Any, cast

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.grading.bert_score_grader import BertScoreGrader
from snne_guard.evaluation.grading.grade import (
    Grade,
    Grader,
    LabelGrader,
    LabelsFirst,
    grades_of,
)
from snne_guard.evaluation.grading.judge_grader import JudgeGrader
from snne_guard.evaluation.grading.numeric_match import numeric_grader
from snne_guard.evaluation.grading.reference_grader import (
    rouge_l_grader,
    squad_contains_grader,
    squad_exact_match_grader,
    squad_f1_grader,
)
from snne_guard.evaluation.grading.user_grader import (
    FunctionGrader,
    GradeFunction,
    import_function,
)
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["GRADERS", "grade_all", "resolve_grader"]


def _label() -> LabelGrader:
    return LabelGrader()


GRADERS: Mapping[str, Callable[..., Grader]] = MappingProxyType(
    {
        "label": _label,
        "squad_f1": squad_f1_grader,
        "squad_em": squad_exact_match_grader,
        "contains": squad_contains_grader,
        "numeric": numeric_grader,
        "rouge_l": rouge_l_grader,
        "bert_score": BertScoreGrader,
        "judge": JudgeGrader,
    }
)
"""What makes the graders of this library, by name, from options."""

_BEHIND_COLON = MappingProxyType({"bert_score": "model", "judge": "name"})
"""Which option of a grader may be named behind its own name and a colon."""


def resolve_grader(
    grader: str | Grader | GradeFunction | None = None,
    /,
    *,
    labels_first: bool = True,
    **options: Any,  # noqa: ANN401 - each grader has its own
) -> Grader:
    """Return the grader that an option means.

    Args:
        grader: A key of ``GRADERS``, an object with ``name`` and ``lexical`` like
            those, a function from a recording to a ``Grade``, a quality, right or
            wrong, or None, or ``"module:function"``, which names one: see
            ``import_function`` for what that may do. None is ``"squad_f1"``.
        labels_first: Whether a recording that has a label gets that as its grade,
            whatever the grader would say.
        options: Options of the grader, such as ``threshold``, or the ``generate`` of
            ``"judge"``.

    Raises:
        ConfigurationError: There is no such grader, or it has no such option.
        MissingExtraError: A package that it needs is not installed.

    Example:
        >>> resolve_grader("squad_f1").name
        'label, else squad_f1'
        >>> resolve_grader("squad_f1", labels_first=False, threshold=0.6).name
        'squad_f1[threshold=0.6]'
    """
    chosen = _resolve("squad_f1" if grader is None else grader, options)
    if not labels_first or isinstance(chosen, LabelGrader | LabelsFirst):
        return chosen
    return LabelsFirst(chosen)


def grade_all(recordings: Iterable[Recording], grader: Grader, /) -> list[Grade | None]:
    """Return the grade of each recording, in order; None where there is none.

    Graders that load a model or call one get all of them at once.

    Raises:
        InputError: A grader of your own gave something that is no grade.

    Example:
        >>> rows = [
        ...     Recording(id="1", question="?", main_answer="a", samples=(), label=1),
        ...     Recording(id="2", question="?", main_answer="a", samples=()),
        ... ]
        >>> grade_all(rows, resolve_grader("label"))
        [Grade(quality=1.0, correct=1, grader='label'), None]
    """
    rows = list(recordings)
    grades = grades_of(grader, rows)
    if len(grades) != len(rows):
        msg = f"expected {len(rows)} grades from {grader.name!r}, got {len(grades)}"
        raise InputError(msg)
    for grade in cast("list[object]", grades):
        if grade is not None and not isinstance(grade, Grade):
            msg = (
                f"expected a Grade or None from grader {grader.name!r}, "
                f"got {type(grade).__name__}"
            )
            raise InputError(msg)
    return grades


def _resolve(
    grader: str | Grader | GradeFunction, options: Mapping[str, Any]
) -> Grader:
    if isinstance(grader, str):
        if grader in GRADERS:
            return _made(grader, GRADERS[grader], options)
        family, colon, behind = grader.partition(":")
        if colon and behind and family in _BEHIND_COLON:
            named = {_BEHIND_COLON[family]: behind}
            return _made(family, GRADERS[family], {**named, **options})
        if not colon:
            msg = (
                f"expected a grader of yours, 'module:function' or one of "
                f"{[*GRADERS]}, got {grader!r}"
            )
            raise ConfigurationError(msg)
        function = import_function(grader)
        return _made(
            grader, FunctionGrader, {"name": grader, "function": function, **options}
        )
    given: object = grader
    if not callable(given):
        msg = f"expected a grader, a function or a name, got {type(given).__name__}"
        raise ConfigurationError(msg)
    if not isinstance(getattr(given, "name", None), str):
        return _made("function", FunctionGrader, {"function": given, **options})
    if options:
        msg = f"expected no options beside a made grader, got {sorted(options)}"
        raise ConfigurationError(msg)
    return cast("Grader", grader)


def _made(
    name: str, factory: Callable[..., Grader], options: Mapping[str, Any]
) -> Grader:
    known = signature(factory).parameters
    if unknown := sorted(set(options) - set(known)):
        msg = f"expected options of grader {name!r} among {[*known]}, got {unknown}"
        raise ConfigurationError(msg)
    needed = [name for name, one in known.items() if one.default is one.empty]
    if missing := sorted(set(needed) - set(options)):
        msg = f"expected options {missing} of grader {name!r} too"
        raise ConfigurationError(msg)
    return factory(**options)
