"""``OpenAIGuard.preflight``: how the API is asked, and what is seen of it."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from snne_guard.assess.examine import AsyncExamination, Examination
from snne_guard.assess.openai_core import OpenAICore
from snne_guard.assess.preflight import NEVER_SAMPLED, Examiner, Preflight
from snne_guard.errors import ConfigurationError
from snne_guard.sampling.collect import Draw, Reply
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.probes import Abilities, Ask, Seen

__all__ = ["apreflight", "preflight"]

C = TypeVar("C", Call, AsyncCall)


def preflight(core: OpenAICore, *, timeout: float) -> Preflight:
    """Ask a model in threads and return what was found out.

    Args:
        core: The guard.
        timeout: Seconds for everything.

    Raises:
        ConfigurationError: If this model is never sampled.
        GuardTimeoutError: If not even the first reply came in time.
    """
    examination = Examination(**_options(core, Call, timeout))

    def begin(ask: Ask) -> _Probe:
        return _Probe(call=_call(core, Call, ask, examination))

    return examination.run(begin, copy_context())


async def apreflight(
    core: OpenAICore,
    *,
    timeout: float,  # noqa: ASYNC109 - mirrors the thread twin
) -> Preflight:
    """Do what ``preflight`` does without blocking the event loop."""
    examination = AsyncExamination(**_options(core, AsyncCall, timeout))

    def begin(ask: Ask) -> _AsyncProbe:
        return _AsyncProbe(call=_call(core, AsyncCall, ask, examination))

    return await examination.run(begin, copy_context())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    call: Call

    def send(self, draw: Draw, /) -> Reply:
        return self.call.send(draw)

    def look(self, reply: Reply, /) -> Seen:
        return Seen(reply=reply)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AsyncProbe:
    call: AsyncCall

    async def send(self, draw: Draw, /) -> Reply:
        return await self.call.send(draw)

    def look(self, reply: Reply, /) -> Seen:
        return Seen(reply=reply)


def _options(core: OpenAICore, kind: type[C], timeout: float) -> dict[str, Any]:
    """Return what an examination is made of."""
    call = core.call(kind, "x", {})
    if call.skip == "side_effects":
        raise ConfigurationError(NEVER_SAMPLED)
    abilities = Abilities(
        own_seed="seed" in call.own,
        batch=call.batch > 1,
        logprobs=core.assessor.judge.wants_logprobs,
        seed=core.endpoint.api.supports_n,  # the API that has one has the other
        max_tokens=core.assessor.plan.sample_max_tokens,
    )
    return {"assessor": core.assessor, "abilities": abilities, "timeout": timeout}


def _call(core: OpenAICore, kind: type[C], ask: Ask, examiner: Examiner) -> C:
    return kind.of(
        core.endpoint,
        ask.prompt,
        {} if ask.seed is None else {"seed": ask.seed},
        plan=examiner.plan_for(ask),
        memory=examiner.memory_for(ask),
        wants_logprobs=core.assessor.judge.wants_logprobs,
    )
