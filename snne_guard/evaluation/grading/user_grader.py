"""A grader from a function of the user's own, also one that is named as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation._importing import import_object
from snne_guard.evaluation.grading.grade import Grade, check_threshold, graded
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["FunctionGrader", "GradeFunction", "import_function"]

GradeFunction = Callable[[Recording], Grade | float | bool | None]
"""A recording to a grade: a ``Grade``, a quality in [0, 1], right or wrong, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionGrader:
    """A function of your own as a grader.

    Args:
        function: Takes a recording. A bool, and the whole numbers 0 and 1, say right
            or wrong; another number is a quality in [0, 1]; None says that it cannot
            grade this one.
        name: What its figures are labelled with; None for the function's own name.
        threshold: Smallest quality that counts as right, for a function that gives
            qualities; None draws no such line.
        lexical: Whether it compares words.

    Raises:
        ConfigurationError: The threshold is not in (0, 1].

    Example:
        >>> def is_short(recording):
        ...     return len(recording.main_answer) < 10
        >>> grader = FunctionGrader(function=is_short)
        >>> grader(Recording(id="1", question="?", main_answer="Paris", samples=()))
        Grade(quality=1.0, correct=1, grader='is_short')
    """

    function: GradeFunction
    name: str = ""
    threshold: float | None = None
    lexical: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            own = getattr(self.function, "__name__", type(self.function).__name__)
            object.__setattr__(self, "name", own)
        check_threshold(self.threshold, self.name)

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return what the function says as a grade.

        Raises:
            InputError: The function returned something else.
        """
        # Any: the function is not ours, whatever its annotations say.
        said: Any = self.function(recording)
        if said is None or isinstance(said, Grade):
            return said
        if _is_verdict(said):
            return graded(float(said), 0.5, self.name)
        if not isinstance(said, Real):
            msg = (
                f"expected a Grade, a number in [0, 1], a bool or None from grader "
                f"{self.name!r}, got {type(said).__name__}"
            )
            raise InputError(msg)
        return graded(float(said), self.threshold, self.name)


def _is_verdict(said: object) -> bool:
    # numpy's bool is none of Python's numbers.
    return isinstance(said, np.bool_) or (isinstance(said, Integral) and said in {0, 1})


def import_function(name: str, /, *, folder: str | Path | None = None) -> Any:  # noqa: ANN401
    """Return the function that ``module:function`` names, for a command line.

    Importing a module runs it with all the rights of this process. Only a name that
    the user typed may come here, never one from a recording or another file.

    Args:
        name: As in ``my_graders:is_right`` or ``package.module:Class.method``.
        folder: Where the module is looked for first; None for the current folder.

    Raises:
        ConfigurationError: The name has another form, or there is no such module or
            function. What the module itself raises on import is passed on.

    Example:
        >>> import_function("math:sqrt")(9)
        3.0
    """
    found = import_object(name, folder=folder)
    if not callable(found):
        msg = f"expected {name!r} to be a function, got {type(found).__name__}"
        raise ConfigurationError(msg)
    return found
