"""Every error that snne-guard raises.

SnneGuardError
├── ConfigurationError (ValueError)   an option makes no sense; raised at construction
├── InputError (ValueError)           data cannot be read or scored
├── MissingExtraError (ImportError)   an optional package or model file is missing
├── ScoringError                      a model that compares answers failed
├── SamplingError                     too few replies of the reply set
├── GuardTimeoutError (TimeoutError)  no answer within the guard's time limit
└── UncertainAnswerError              the answer was withheld; only when asked for

``snne_guard.langchain`` raises subclasses of ``SamplingError`` and
``UncertainAnswerError`` that are also langchain-core's ``ModelError``.
"""

from __future__ import annotations

__all__ = [
    "ConfigurationError",
    "GuardTimeoutError",
    "InputError",
    "MissingExtraError",
    "SamplingError",
    "ScoringError",
    "SnneGuardError",
    "UncertainAnswerError",
]


class SnneGuardError(Exception):
    """Base class of all errors of this library."""


class ConfigurationError(SnneGuardError, ValueError):
    """An option has a value that makes no sense, alone or with another option."""


class InputError(SnneGuardError, ValueError):
    """Data cannot be read or scored: wrong shape, wrong length, NaN, damaged file."""


class MissingExtraError(SnneGuardError, ImportError):
    """An optional package or a model file is not installed.

    Attributes:
        extra: Name of the extra that installs it, for example ``"demo"``.
        command: What to type to install it.
    """

    # The defaults are for pickle, which restores the attributes afterwards.
    def __init__(
        self, needed: str, *, extra: str = "", command: str | None = None
    ) -> None:
        super().__init__(needed)
        self.extra = extra
        self.command = command or f'pip install "snne-guard[{extra}]"'

    def __str__(self) -> str:
        return f"{self.args[0]} is not installed. Install it with: {self.command}"


class ScoringError(SnneGuardError):
    """A model that compares answers failed; its own error is the cause.

    The message never contains a text that was compared.
    """


class SamplingError(SnneGuardError):
    """Too few replies of the reply set could be drawn or used.

    Attributes:
        assessment_id: Id under which observers received the assessment.
        n_used: Replies that could be used, the answer included.
        needed: Replies that the guard requires (``min_replies``).
        reasons: Why, as reason codes.
        causes: Type names of the exceptions that were raised. An exception itself may
            hold a text and may not survive pickling.
    """

    is_retryable = False

    def __init__(
        self,
        message: str,
        *,
        assessment_id: str = "",
        n_used: int = 0,
        needed: int = 0,
        reasons: tuple[str, ...] = (),
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.assessment_id = assessment_id
        self.n_used = n_used
        self.needed = needed
        self.reasons = reasons
        self.causes = causes


class GuardTimeoutError(SnneGuardError, TimeoutError):
    """The answer did not arrive within the ``timeout`` of the guarded call.

    Attributes:
        timeout: The limit in seconds.
    """

    def __init__(self, message: str, *, timeout: float = 0.0) -> None:
        super().__init__(message)
        self.timeout = timeout


class UncertainAnswerError(SnneGuardError):
    """The answer was withheld because it is too uncertain or could not be scored.

    Neither the message nor an attribute contains the text of the answer. Observers
    of the guard receive it under ``assessment_id``.

    Attributes:
        assessment_id: Id under which observers received the assessment.
        uncertainty: ``u`` in [0, 1], None when the answer could not be scored.
        score: The method's raw value, None when the answer could not be scored.
        threshold: The largest ``u`` that the guard accepts.
        reasons: Reason codes of the assessment.
    """

    is_retryable = False

    def __init__(
        self,
        message: str,
        *,
        assessment_id: str = "",
        uncertainty: float | None = None,
        score: float | None = None,
        threshold: float | None = None,
        reasons: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.assessment_id = assessment_id
        self.uncertainty = uncertainty
        self.score = score
        self.threshold = threshold
        self.reasons = reasons
