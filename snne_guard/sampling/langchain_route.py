"""Which LangChain models give the samples, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.sampling.langchain_copies import sampling_copy
from snne_guard.sampling.langchain_direct import is_bare
from snne_guard.sampling.langchain_effects import side_effects
from snne_guard.sampling.langchain_models import Candidate, ChatRunnable, resolve
from snne_guard.sampling.langchain_options import cleaned
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import takes_temperature
from snne_guard.sampling.plan import SamplingPlan

__all__ = ["Route"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The chat models that give the samples, each with the copy that draws them.

    Attributes:
        candidates: In the order in which they are tried.
        copies: The copy of each that draws samples.
        temperature: Temperature that is wanted of samples.
        acts: Whether a draw would do more than answer, whatever a call asks for.
        bare: Whether the user's runnable does no more than call the one candidate.
    """

    candidates: tuple[Candidate, ...]
    copies: tuple[BaseChatModel, ...]
    temperature: float = 1.0
    acts: bool
    bare: bool = False

    @classmethod
    def of(cls, model: ChatRunnable, plan: SamplingPlan) -> Route:
        """Return the route to the models behind a pinned runnable."""
        candidates = resolve(model)
        copies = tuple(
            sampling_copy(
                candidate.model,
                temperature=plan.temperature,
                max_tokens=plan.sample_max_tokens,
                clean=partial(cleaned, max_tokens=plan.sample_max_tokens),
            )
            for candidate in candidates
        )
        return cls(
            candidates=candidates,
            copies=copies,
            temperature=plan.temperature,
            acts=any(side_effects(candidate, {}) for candidate in candidates),
            bare=is_bare(model),
        )

    @property
    def providers(self) -> tuple[Provider, ...]:
        """How samples are drawn from each of them."""
        return tuple(candidate.provider for candidate in self.candidates)

    @property
    def supports_batch(self) -> bool:
        """Whether several replies may come in one request."""
        return all(row.supports_batch for row in self.providers)

    @property
    def supports_logprobs(self) -> bool:
        """Whether token log-probabilities may come, whoever answers."""
        return bool(self.logprob_options)

    @property
    def logprob_options(self) -> Mapping[str, object]:
        """What asks for log-probabilities, whoever answers; empty where one cannot."""
        first, *others = [row.logprobs for row in self.providers]
        return first if all(asking == first for asking in others) else {}

    @property
    def user_wants_logprobs(self) -> bool:
        """Whether the user asked for log-probabilities in the answer."""
        return any(candidate.asked("logprobs") for candidate in self.candidates)

    @property
    def has_tools(self) -> bool:
        """Whether tools are bound."""
        return any(candidate.kwargs.get("tools") for candidate in self.candidates)

    def unsampled(self, kwargs: Mapping[str, Any]) -> str | None:
        """Return why a call with these options may not be sampled, None if it may."""
        # The copies that draw were made when this was: a model is fixed from then on.
        if self.acts or (
            kwargs and any(side_effects(each, kwargs) for each in self.candidates)
        ):
            return "side_effects"
        return None

    def reasons(self) -> tuple[str, ...]:
        """Return what is known not to be as usual about these models."""
        fixed = not all(takes_temperature(each.model) for each in self.candidates)
        asked = self.temperature
        capped = any(row.within(asked) != asked for row in self.providers)
        reasons = ["temperature_unset"] if fixed else []
        if capped:
            reasons.append("temperature_capped")
        return tuple(reasons)
