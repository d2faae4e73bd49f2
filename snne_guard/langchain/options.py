"""The options of a guard as fields, and what can be read off them."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableSerializable
from pydantic import ConfigDict, Field, PrivateAttr

from snne_guard.decision import REFUSAL
from snne_guard.langchain.build import described
from snne_guard.langchain.core import GuardCore
from snne_guard.sampling.breaker import BREAKER
from snne_guard.sampling.langchain_models import pin, resolve
from snne_guard.types import OnError, Schedule

__all__ = ["GuardOptions"]


class GuardOptions(RunnableSerializable[LanguageModelInput, AIMessage]):
    """The fields of ``SNNEGuard``, which documents them.

    LangChain reads them for ``configurable_fields`` and for its schemas; they are
    loose here because ``build`` checks them, with messages of our own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)
    model: Any
    n: int = 5
    include_answer: bool = True
    temperature: float = 1.0
    method: Any = "auto"
    similarity: Any = None
    tau: float | None = None
    threshold: Any = None
    calibration: Any = None
    allow_mismatch: bool = False
    prompt_version: Any = None
    on_uncertain: Any = "flag"
    fallback: Any = None
    refusal: str = REFUSAL
    on_error: OnError = "uncertain"
    tool_calls: Any = "skip"
    min_samples: int | None = None
    schedule: Schedule | None = None
    rounds: Any = None
    stopping: Any = "certificate"
    timeout: float | None = None
    sample_timeout: float | None = None
    sample_max_tokens: int | None = None
    max_concurrency: int | None = None
    max_attempts: int = 4
    sample_rate: float = 1.0
    sample_when: Any = None
    question: Any = None
    prices: Any = None
    budget: Any = None
    breaker: Any = BREAKER
    monitor: Any = None
    observers: tuple[Any, ...] = ()
    trace_samples: bool = True
    structured: bool = Field(default=False, repr=False)
    chosen: bool = Field(default=False, repr=False)
    shared: Any = Field(default=None, repr=False, exclude=True)

    _core: GuardCore = PrivateAttr()

    @property
    def innermost(self) -> BaseChatModel:
        """The chat model behind all wrappers; the first one where there are several.

        Raises:
            ConfigurationError: If there is none.
        """
        return resolve(pin(self.model))[0].model

    @property
    def observer_failures(self) -> int:
        """Events that an observer raised on, or that were dropped for it."""
        return self._core.assessor.observers.failures

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults, and no secret."""
        return described(self)

    __str__ = __repr__

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: LangChain refuses to load classes of other packages."""
        return False

    @property
    def InputType(self) -> Any:  # noqa: N802 - LangChain's name
        """What the model takes."""
        return self.model.InputType

    @property
    def OutputType(self) -> type[AIMessage]:  # noqa: N802 - LangChain's name
        """What the model gives."""
        return AIMessage
