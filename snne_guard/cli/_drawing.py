"""Drawing one question for a recording, with a guard that decides nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from snne_guard.assess.switch import DISABLED_VARIABLE, disabled
from snne_guard.cli._asking import short_answers
from snne_guard.cli._models import with_settings
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Drawn, Question
from snne_guard.evaluation.recording.ended import ended
from snne_guard.sampling.prices import Prices
from snne_guard.sampling.retry import aretried
from snne_guard.types import Assessment, SampleEvent

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from snne_guard import SNNEGuard
    from snne_guard.sampling.langchain_models import ChatRunnable

__all__ = ["Causes", "DrawSettings", "GuardDraw", "guard_draw"]

_EMBEDDED_TOKENS = 32
"""What the embedded model is limited to, where nothing else is asked for."""

_DECIDING = frozenset({"no_threshold", "too_few_samples"})
"""Reason codes about a decision, which nobody takes here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings:
    """What decides which replies come; two recordings under the same are comparable.

    Attributes:
        model: As the user has named it, None for the embedded one.
        temperature: Of the samples.
        answer_temperature: Of the answer, None for the model's own.
        samples: Samples besides the answer.
        max_tokens: Token limit of a reply, None for the model's own.
        system: The system prompt, None for none.
        seed: What is drawn is fixed by it, None where it is not.
        stop: Texts that end a reply, None where nothing but the model does.
        dataset: Which of the paper's data sets is asked, with how many shots, chosen
            by which seed; None where the questions are the user's own.
        top_p: Of answer and samples, None where it is left to the model.
        completion: Whether a local model goes on with the text of the prompt, without
            its chat template.
        send_stop: Whether the model is told these texts; replies end there anyway.
        unseen: Settings that nobody can see of this model; no line says them.
    """

    model: str | None
    temperature: float
    answer_temperature: float | None
    samples: int
    max_tokens: int | None
    system: str | None
    seed: int | None
    stop: tuple[str, ...] | None = None
    dataset: Mapping[str, Any] | None = None
    completion: bool = False
    prompt_version: str | None = None
    top_p: float | None = None
    send_stop: bool = True
    unseen: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return what each line of a recording says."""
        untold = {"send_stop", "unseen", *self.unseen}
        settings = {k: v for k, v in asdict(self).items() if k not in untold}
        if self.stop is not None:
            settings["stop"] = list(self.stop)
        if self.model is not None:
            return settings
        from snne_guard.langchain.embedded import MODEL_NAME

        own = {"model": MODEL_NAME, "max_tokens": _EMBEDDED_TOKENS}
        given = {name: value for name, value in settings.items() if value is not None}
        return {**settings, **own, **given}

    def known(self, chat: BaseChatModel) -> DrawSettings:
        """Return them with what a model draws its answers with by itself.

        Some classes have a temperature or a token limit of their own where the user
        sets none.
        """
        from snne_guard.sampling.langchain_models import answer_settings

        found = dict(answer_settings(chat))
        for name in ("answer_temperature", "max_tokens", "stop"):
            if getattr(self, name) is not None:
                del found[name]
        own: dict[str, Any] = {k: next(iter(each)) for k, each in found.items() if each}
        return replace(self, **own, unseen=frozenset(found.keys() - own.keys()))

    def messages(self, question: Question) -> list[tuple[str, str]]:
        """Return what the model is sent."""
        if self.system is not None:
            return [("system", self.system), ("human", question.prompt)]
        if self.model is None and self.dataset is None:
            return short_answers(question.prompt)
        return [("human", question.prompt)]

    def on(self, chat: BaseChatModel) -> ChatRunnable:
        """Return a model with the settings that it does not have yet."""
        return with_settings(
            chat,
            temperature=self.answer_temperature,
            max_tokens=self.max_tokens,
            stop=self.stop if self.send_stop else None,
        )


class Causes:
    """An observer that keeps why samples failed, for each guarded call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, BaseException] = {}

    def on_sample_end(self, event: SampleEvent) -> None:
        """Keep the last error of the samples."""
        if event.role == "sample" and event.error is not None:
            with self._lock:
                self._errors[event.assessment_id] = event.error

    def on_assessment(self, assessment: Assessment) -> None:
        """Do nothing: a guard waits for this event, and so for those before it."""

    def of(self, assessment_id: str) -> BaseException | None:
        """Return why samples of a call failed, and forget it; None if none did."""
        with self._lock:
            return self._errors.pop(assessment_id, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardDraw:
    """Draws the answer with the model's own settings and the samples with the guard's.

    The samples wait for the answer: where it fails, nothing else has been paid.

    Attributes:
        chat: The model, as it was set up.
        guard: A guard on it; its observers hold ``causes``.
        causes: Where the errors of samples are looked up.
        settings: What is asked.
        max_attempts: Requests sent for the answer before the question has failed.
    """

    chat: BaseChatModel
    guard: SNNEGuard
    causes: Causes
    settings: DrawSettings
    max_attempts: int

    async def __call__(
        self, question: Question, /, *, n_samples: int, tries: int
    ) -> Drawn:
        """Draw one question."""
        guard = self._guard(n_samples, tries=tries)
        messages = self.settings.messages(question)
        assessment = await aretried(
            partial(guard.aassess, messages), attempts=self.max_attempts
        )
        reasons = (r for r in assessment.reasons if r not in _DECIDING)
        drawn = Drawn(
            answer=assessment.answer,
            samples=assessment.samples,
            reasons=tuple(reasons),
            cost=assessment.cost,
            error=self.causes.of(assessment.id),
        )
        stops = self.settings.stop
        return drawn if stops is None else ended(drawn, stops)

    def _guard(self, n_samples: int, *, tries: int) -> SNNEGuard:
        settings = self.settings
        if not tries:
            return self.guard
        chat = self.chat
        if settings.seed is not None:
            # The answer takes one seed and each sample one of those that follow.
            chat = _reseeded(chat, settings.seed + tries * (settings.samples + 1))
        return self.guard.on(settings.on(chat), n=n_samples + 1)


def guard_draw(
    chat: BaseChatModel,
    settings: DrawSettings,
    *,
    max_concurrency: int,
    max_attempts: int,
    timeout: float | None,
    prices: Prices | None,
) -> GuardDraw:
    """Return what draws questions from a chat model.

    Args:
        chat: The model.
        settings: What is asked, and how.
        max_concurrency: Requests in flight at once.
        max_attempts: Requests sent for one reply before it has failed.
        timeout: Seconds for one question, None for no limit.
        prices: What tokens cost, None where nobody knows.

    Raises:
        ConfigurationError: If an option makes no sense, or guards are switched off.
    """
    from snne_guard import SNNEGuard
    from snne_guard.sampling.langchain_copies import without_retries

    if disabled():
        msg = f"{DISABLED_VARIABLE} is set, so no samples would be drawn; unset it"
        raise ConfigurationError(msg)
    chat = without_retries(chat)
    causes = Causes()
    guard = SNNEGuard(
        settings.on(chat),
        n=settings.samples + 1,
        temperature=settings.temperature,
        schedule="answer_first",
        timeout=timeout,
        max_concurrency=max_concurrency,
        max_attempts=max_attempts,
        prices=prices,
        breaker=None,  # a question without its samples is no use; the run stops instead
        observers=(causes,),
    )
    return GuardDraw(
        chat=chat,
        guard=guard,
        causes=causes,
        settings=settings,
        max_attempts=max_attempts,
    )


def _reseeded(chat: BaseChatModel, seed: int) -> BaseChatModel:
    from snne_guard.sampling.langchain_providers import provider_of

    names = {"seed", provider_of(chat).seed or "seed"} & type(chat).model_fields.keys()
    given = [name for name in names if getattr(chat, name) is not None]
    return chat.model_copy(update=dict.fromkeys(given, seed))
