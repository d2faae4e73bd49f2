"""``SNNEGuard.preflight``: how a LangChain model is asked, and what is seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.globals import get_llm_cache
from langchain_core.messages import HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from snne_guard.assess.examine import AsyncExamination, Examination
from snne_guard.assess.preflight import NEVER_SAMPLED, Examiner, Preflight
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.core import Request
from snne_guard.langchain.errors import GuardTimeoutError
from snne_guard.sampling.collect import Draw, Reply
from snne_guard.sampling.langchain import AsyncSamples, Samples
from snne_guard.sampling.langchain_options import seed_of
from snne_guard.sampling.langchain_route import Route
from snne_guard.sampling.langchain_runs import AsyncRunLog, RunLog
from snne_guard.sampling.probes import Abilities, Ask, Seen
from snne_guard.types import Sample

__all__ = ["apreflight", "preflight", "seen_in"]


def preflight(request: Request, *, timeout: float) -> Preflight:
    """Ask a model in threads and return what was found out.

    Args:
        request: Any call of the guard; its question is not asked.
        timeout: Seconds for everything.

    Raises:
        ConfigurationError: If this model is never sampled.
        GuardTimeoutError: If not even the first reply came in time.
    """
    examination = Examination(**_options(request, timeout))

    def begin(ask: Ask) -> _Probe:
        log = _Log(**_log_options(request))
        samples = Samples(**_sampler(request, ask, examination)).listen(log)
        return _Probe(samples=samples, log=log)

    return examination.run(begin, request.context)


async def apreflight(
    request: Request,
    *,
    timeout: float,  # noqa: ASYNC109 - mirrors the thread twin
) -> Preflight:
    """Do what ``preflight`` does without blocking the event loop."""
    examination = AsyncExamination(**_options(request, timeout))

    def begin(ask: Ask) -> _AsyncProbe:
        log = _AsyncLog(**_log_options(request))
        samples = AsyncSamples(**_sampler(request, ask, examination)).listen(log)
        return _AsyncProbe(samples=samples, log=log)

    return await examination.run(begin, request.context)


def _options(request: Request, timeout: float) -> dict[str, Any]:
    """Return what an examination is made of."""
    route, assessor = request.route, request.core.assessor
    if route.unsampled(request.kwargs) is not None:
        raise ConfigurationError(NEVER_SAMPLED)
    abilities = Abilities(
        batch=assessor.batch(supported=route.supports_batch) > 1,
        logprobs=_wants_logprobs(request),
        temperature="temperature_unset" not in route.reasons(),
        seed=_seed_option(route) is not None,
        own_seed=seed_of(route.candidates[0], Draw(index=0, n=1)) is not None,
        max_tokens=assessor.plan.sample_max_tokens,
    )
    return {
        "assessor": assessor,
        "abilities": abilities,
        "timeout": timeout,
        "own_cache": _has_cache(route),
        "late": GuardTimeoutError,
    }


def _wants_logprobs(request: Request) -> bool:
    judge = request.core.assessor.judge
    return request.route.supports_logprobs and judge.wants_logprobs


def _seed_option(route: Route) -> str | None:
    """Return the name of the option that seeds a request, None where there is none."""
    first, row = route.candidates[0], route.providers[0]
    # A row that names no classes is that of all others.
    known = bool(row.classes) or row.seed_name in type(first.model).model_fields
    takes = known and row.seed is not None and not row.seed_is_field
    return row.seed_name if takes else None


def _sampler(request: Request, ask: Ask, examiner: Examiner) -> dict[str, Any]:
    """Return what the sampler of one request is made of."""
    plan, seed = examiner.plan_for(ask), _seed_option(request.route)
    seeded = ask.seed is not None and seed is not None
    return {
        "route": Route.of(request.model, plan),
        "messages": [HumanMessage(ask.prompt)],
        "kwargs": {seed: ask.seed} if seeded else {},
        "plan": plan,
        "memory": examiner.memory_for(ask),
        "logprobs": _wants_logprobs(request),
    }


def _log_options(request: Request) -> dict[str, Any]:
    # There is no decision to wait for.
    return {**request.log_options(), "hold": False}


class _Log(RunLog):
    """Keeps the whole result: a sample has no tokens and no id."""

    result: LLMResult | None = None

    def close(self, run: Any, result: LLMResult) -> None:
        self.result = result
        super().close(run, result)


class _AsyncLog(AsyncRunLog):
    """The twin of ``_Log``."""

    result: LLMResult | None = None

    async def close(self, run: Any, result: LLMResult) -> None:
        self.result = result
        await super().close(run, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    samples: Samples
    log: _Log

    def send(self, draw: Draw, /) -> Reply:
        return self.samples.send(draw)

    def look(self, reply: Reply, /) -> Seen:
        return seen_in(reply, self.log.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AsyncProbe:
    samples: AsyncSamples
    log: _AsyncLog

    async def send(self, draw: Draw, /) -> Reply:
        return await self.samples.send(draw)

    def look(self, reply: Reply, /) -> Seen:
        return seen_in(reply, self.log.result)


def seen_in(reply: Reply, result: LLMResult | None) -> Seen:
    """Return what is to be seen of a reply and of the result that it was read from."""
    generations = [
        generation
        for generation in (result.generations[0] if result else ())
        if isinstance(generation, ChatGeneration)
    ]
    ids = [g.message.response_metadata.get("id") for g in generations]
    pairs = zip(generations, reply.samples, strict=False)
    return Seen(
        reply=reply,
        garbled=any(_is_garbled(*pair) for pair in pairs),
        response_id=next((one for one in ids if isinstance(one, str)), None),
    )


def _is_garbled(generation: ChatGeneration, sample: Sample) -> bool:
    """Return whether log-probabilities came of which none can be one."""
    if sample.misaligned or sample.token_logprobs is not None:
        return False
    info = {
        **(generation.generation_info or {}),
        **generation.message.response_metadata,
    }
    found: object = info.get("logprobs")
    if isinstance(found, Mapping):
        found = cast("Mapping[str, object]", found).get("content")
    return bool(found)


def _has_cache(route: Route) -> bool:
    """Return whether LangChain would answer from a cache for the user's model."""
    kept = [candidate.model.cache for candidate in route.candidates]
    on = get_llm_cache() is not None
    return any(cache is not False and (cache is not None or on) for cache in kept)
