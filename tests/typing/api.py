"""The types of the public API, checked by mypy and pyright and never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, assert_type

import numpy as np
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable
from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from snne_guard import (
    Assessment,
    AsyncOpenAIGuard,
    AsyncOpenAISampler,
    Breaker,
    Budget,
    Cost,
    GuardedChatModel,
    Monitor,
    OpenAIGuard,
    OpenAISampler,
    OpenAITurn,
    Prices,
    ResponseSet,
    Score,
    SNNEGuard,
    SqliteStore,
    TransformersChatModel,
    score,
)
from snne_guard.decision import (
    CalibratedStop,
    Calibration,
    Cascade,
    Exploration,
    MonitorStatus,
    MonitorStore,
    Policy,
    ProbabilityMap,
    Threshold,
    WatchState,
    exploratory,
    fit_cascade,
    fit_probability,
    probability_maps,
    threshold_pair,
)
from snne_guard.evaluation import (
    DATASETS,
    BadLine,
    CalibrationRun,
    Dataset,
    Draw,
    Drawn,
    Evaluation,
    Interval,
    Promise,
    Question,
    Recorder,
    RecordingStore,
    Reliability,
    Tally,
    auroc,
    bootstrap,
    calibrate,
    cross_fitted,
    evaluate,
    learn_stop,
    parse_questions,
    prr,
    read_dataset,
    reliability,
    risk_coverage_curve,
    run_calibration,
    to_html,
    write_report,
)
from snne_guard.langchain import ChatGenerate, Finding, Preflight
from snne_guard.sampling.hf_likelihood import HuggingFaceLikelihood
from snne_guard.sampling.huggingface import (
    Completion,
    GenerationSettings,
    HuggingFaceModel,
)
from snne_guard.sampling.openai_generate import OpenAIGenerate
from snne_guard.sampling.openai_likelihood import OpenAILikelihood
from snne_guard.scorers import (
    METHODS,
    READINGS,
    Shot,
    eigen_score,
    greedy_clusters,
    heat_kernel,
    kle_full,
    luq_pair,
    matern_kernel,
    p_true,
    p_true_logprob,
    sar,
    semantic_density,
    semantic_entropy,
    snne,
    uncertainty,
    wsnne,
)
from snne_guard.similarity import (
    NLI,
    CrossEncoder,
    Embedding,
    EntailmentJudge,
    Match,
    exact,
    numeric,
    rouge_l,
)
from snne_guard.types import (
    AsyncSampler,
    BoolArray,
    Entailment,
    Equivalence,
    FloatArray,
    Generate,
    IntArray,
    Likelihood,
    Method,
    MethodInputs,
    SampleEvent,
    Sampler,
)
from snne_guard_integrations.callback import (
    ShadowCounts,
    SNNECallbackHandler,
    WatchedRun,
)
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware
from snne_guard_integrations.langgraph import (
    UncertaintyState,
    route_on_uncertainty,
    uncertainty_node,
)
from snne_guard_integrations.openai import (
    AssessmentRecord,
    assessment,
    guard_client,
)


def same_words(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    del question
    return np.eye(len(texts))


class Print:
    def on_sample_end(self, event: SampleEvent) -> None:
        print(event.n)  # noqa: T201 - never run

    async def on_assessment(self, assessment: Assessment) -> None:
        print(assessment.uncertainty)  # noqa: T201 - never run


def after_five(score: Score, missing: int) -> bool:
    return score.n >= 5 and missing > 0


def decide(assessment: Assessment) -> str:
    return "refuse" if assessment.n_used < 4 else "flag"


def calibrating(path: Path) -> None:
    reads = fit_probability(np.zeros(3), [True, False, 1])
    assert_type(reads, ProbabilityMap)
    assert_type(reads(0.5), tuple[float, float, float])
    maps = probability_maps({5: ([0.1], [1])})
    made = Calibration(settings={}, threshold=Threshold.fixed(0.4), probability=maps)
    made.save(path)
    assert_type(Calibration.load(path), Calibration)
    assert_type(made.check({}), tuple[str, ...])
    made.tries = 2  # type: ignore[misc]  # it is frozen


def guards(model: BaseChatModel) -> None:
    guard = SNNEGuard(model)
    assert_type(guard, SNNEGuard)
    SNNEGuard(model, n=3, threshold=0.5, on_uncertain="refuse", observers=[Print()])
    kept = SNNEGuard.from_calibration(model, Path("guard.json"), on_uncertain="flag")
    assert_type(kept, SNNEGuard)
    SNNEGuard(model, calibration="guard.json", allow_mismatch=True, prompt_version="2")
    SNNEGuard(model, calibration=3)  # type: ignore[arg-type]
    SNNEGuard(model, threshold=(Threshold.fixed(0.4), 0.7))
    SNNEGuard(model, threshold=Threshold.fixed(0.4), on_uncertain=decide)
    SNNEGuard(
        model, threshold=(0.3, 0.7), similarity=same_words, schedule="answer_first"
    )
    SNNEGuard(model.bind(stop=["x"]), fallback=model.with_retry(), on_error="raise")
    SNNEGuard.paper(model, observers=[Print()])
    SNNEGuard(model, prices=Prices(prompt=2, completion=8.0, cached=0.5))
    SNNEGuard(model, budget=Budget(tokens_per_call=9, money_per_minute=0.5))
    SNNEGuard(model, breaker=None, sample_when=lambda messages: len(messages) > 1)
    SNNEGuard(model, question=lambda messages: messages[-1].text)
    SNNEGuard(model, breaker=Breaker(failures=3, cooldown=1.0))
    SNNEGuard(model, n=10, rounds=(5, 8, 10), threshold=0.4, stopping=after_five)
    SNNEGuard(model, n=10, rounds=[5, 10], threshold=0.4, stopping=None)
    rule = learn_stop("recorded.jsonl", rounds=(3, 5, 10), threshold=0.4)
    assert_type(rule, CalibratedStop)
    SNNEGuard(model, n=10, threshold=0.4, method="snne", stopping=rule)
    SNNEGuard(model, stopping="soon")  # type: ignore[arg-type]  # no such word
    SNNEGuard(model, on_uncertain="shrug")  # type: ignore[arg-type]  # no such word
    assert_type(guard.invoke("x"), AIMessage)
    assert_type(guard.stream("x"), Iterator[AIMessage])
    assert_type(guard.astream("x"), AsyncIterator[AIMessage])
    assert_type(guard.assess("x"), Assessment)
    assert_type(guard.assess("x").cost.money, float | None)
    assert_type(guard.batch(["x"]), list[AIMessage])
    report = guard.preflight(timeout=10)
    assert_type(report, Preflight)
    assert_type(report.ok, bool)
    assert_type(report.findings, tuple[Finding, ...])
    assert_type(report.cost, Cost)
    chat_model = GuardedChatModel(guard)
    assert_type(chat_model.invoke("x"), AIMessage)
    prompt = ChatPromptTemplate.from_template("{q}")
    assert_type((prompt | guard | StrOutputParser()).invoke({"q": "x"}), str)


async def without_langchain(
    client: OpenAI, tasks: AsyncOpenAI, azure: AzureOpenAI
) -> None:
    guard = OpenAIGuard(client, model="m", n=3, threshold=0.4, options={"seed": 1})
    assert_type(guard, OpenAIGuard)
    assert_type(guard.assess("x", max_tokens=5), Assessment)
    assert_type(OpenAIGuard.paper(azure, model="m"), OpenAIGuard)
    OpenAIGuard(client, model="m", api="responses", on_uncertain=decide)
    OpenAIGuard(client, model="m", question=str).assess("x", question="x", seed=1)
    OpenAIGuard(client, model="m", thresold=0.4)  # type: ignore[call-arg]  # a typo
    OpenAIGuard(tasks, model="m")  # type: ignore[arg-type]  # of the other kind
    bound = OpenAIGuard.from_calibration(client, "guard.json", model="m", n=5)
    assert_type(bound, OpenAIGuard)
    OpenAIGuard.from_calibration(tasks, "guard.json")  # type: ignore[arg-type]
    asynchronous = AsyncOpenAIGuard(tasks, model="m", observers=[Print()])
    assert_type(
        await asynchronous.assess([{"role": "user", "content": "x"}]), Assessment
    )
    sampler: Sampler = OpenAISampler(client, model="m", api="responses", logprobs=False)
    assert_type(sampler.sample("x"), ResponseSet)
    other: AsyncSampler = AsyncOpenAISampler(tasks, model="m")
    assert_type(await other.sample("x"), ResponseSet)


async def recordings(store: RecordingStore, sampler: AsyncSampler) -> None:
    assert_type(DATASETS["svamp"], Dataset)
    rows = read_dataset("svamp", path="svamp.jsonl", limit=3, n_shots=2)
    assert_type(rows, Iterator[tuple[int, Question | BadLine]])

    async def draw(question: Question, /, *, n_samples: int, tries: int) -> Drawn:
        assert_type((question.context, n_samples, tries), tuple[str | None, int, int])
        return Drawn.from_responses(await sampler.sample(question.prompt))

    draws: Draw = draw
    recorder = Recorder(store, draws, n_samples=3, on_progress=print)
    assert_type(await recorder.run(parse_questions([b"{}"])), Tally)
    Recorder(store, print)  # type: ignore[arg-type]  # draws nothing


async def local_models(name: str) -> None:
    chat = TransformersChatModel.from_pretrained(name, temperature=0.2, n=3)
    assert_type(chat, TransformersChatModel)
    assert_type(chat.invoke("x"), AIMessage)
    assert_type(SNNEGuard(TransformersChatModel.of(chat.model)), SNNEGuard)
    held = HuggingFaceModel.of(chat.model)
    settings = GenerationSettings(top_p=0.9, stop=("x",), hidden_layer=-1)
    question = [{"role": "user", "content": "x"}]
    replies = held.generate(["x", question], n=2, settings=settings)
    assert_type(replies, list[tuple[Completion, ...]])
    assert_type(await held.agenerate([question]), list[tuple[Completion, ...]])
    assert_type(replies[0][0].token_logprobs, tuple[float, ...])


def scores() -> None:
    found = score(["a", "b"], token_logprobs=[[-0.1], [-0.2]], method="auto", tau=1.0)
    assert_type(found, Score)
    assert_type(found.matrix, FloatArray | None)
    assert_type(found.similarity, str | None)
    assert_type(found.uncertainty, float | None)
    equivalences: list[Equivalence] = [exact, numeric, Match("first", lambda t: t[:1])]
    assert_type(equivalences[0].equivalent(["a"], question="q"), BoolArray)
    embedding = Embedding("some/model", condition_on_question=True)
    assert_type(embedding.vectors(["a"]), FloatArray)
    assert_type(embedding.matrices([["a"], ["b"]]), list[FloatArray])
    matrix = rouge_l(["a", "b"], tokens="unicode")
    assert_type(snne(matrix, tau=0.5, include_self=False), float)
    assert_type(wsnne(matrix, [-0.1, -0.2]), float)
    assert_type(uncertainty(-1.0, 2), float | None)
    method: Method = METHODS["dse"]
    assert_type(method.bounds(3), tuple[float, float] | None)
    other: Method = READINGS["wsnne_printed"]
    assert_type(other.needs, frozenset[str])
    assert_type(METHODS["snne"].compute(MethodInputs(similarity=matrix)), float)
    clusters = greedy_clusters(exact.equivalent(["a", "b"]))
    assert_type(clusters, IntArray)
    assert_type(semantic_entropy(clusters, [-0.1, -0.2]), float)
    assert_type(luq_pair(matrix, reading="premise"), float)
    luq_pair(matrix, reading="paper")  # type: ignore[arg-type]  # no such reading
    assert_type(heat_kernel(matrix, t=0.3), FloatArray)
    full = kle_full(matrix, clusters, [-0.1, -0.2], kernel=matern_kernel)
    assert_type(full, float)
    assert_type(sar([[-0.1], [-0.2]], [[0.5], [0.5]], matrix), float)
    assert_type(eigen_score(matrix, reading="official"), float)
    assert_type(semantic_density(np.zeros((2, 2, 3)), [-0.1, -0.2]), float)


def likelihoods(client: OpenAI, model: HuggingFaceModel) -> None:
    likelihood: Likelihood = HuggingFaceLikelihood(model)
    likelihood = OpenAILikelihood(client, model="gpt-4.1-mini")
    shot = Shot(question="2 + 2?", answer="4", correct=True)
    logprob = p_true_logprob(likelihood, "3 + 3?", "6", ["6"], shots=[shot])
    assert_type(p_true(logprob, reading="code"), float)
    Shot(question="2 + 2?", answer="4")  # type: ignore[call-arg]  # correct or not


class Entails:
    """All that an entailment of one's own must have."""

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return self.probabilities(texts, question=question)[:, :, 2]

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        return np.zeros((len(texts), len(texts), 3))


def relations(chat: BaseChatModel, client: OpenAI) -> None:
    nli = NLI("microsoft/deberta-base-mnli", device="cpu", strict=False)
    assert_type(nli(["a", "b"], question="q"), FloatArray)
    assert_type(nli.load(), NLI)
    assert_type(nli.blind_spots(["a"], question="q"), tuple[str, ...])
    entailment: Entailment = nli
    assert_type(entailment.probabilities(["a", "b"]), FloatArray)
    own: Entailment = Entails()
    assert_type(score(["a", "b"], method="dse", similarity=own), Score)
    ask: Generate = ChatGenerate(chat.bind(stop=["x"]))
    judge = EntailmentJudge(ask, name="j", max_concurrency=2)
    same: tuple[Equivalence, ...] = (nli, judge)
    assert_type(same[0].equivalent(["a", "b"]), BoolArray)
    EntailmentJudge(OpenAIGenerate(client, model="m", temperature=0))
    EntailmentJudge(len)  # type: ignore[arg-type]  # no text comes of it
    encoder = CrossEncoder(max_length=256)
    weights = encoder.token_importance(None, "a b", ["a", " b"], removal="everywhere")
    assert_type(weights, FloatArray)
    encoder.token_importance(None, "a", ["a"], removal="all")  # type: ignore[arg-type]
    SNNEGuard(chat, method="dse", similarity=judge, threshold=0.5)


async def shadow_mode(model: BaseChatModel) -> None:
    def take(run: WatchedRun) -> bool:
        return run.metadata.get("langgraph_node") == "answer"

    guard = SNNEGuard(model, n=3)
    with SNNECallbackHandler(guard, sample_rate=0.1, take_when=take) as handler:
        model.invoke("x", {"callbacks": [handler]})
        assert_type(handler.flush(timeout=None), bool)
        assert_type(handler.counts, ShadowCounts)
    SNNECallbackHandler(model)  # type: ignore[arg-type]  # a model is no guard
    assert_type(await handler.aclose(drain=False), bool)
    assert_type(guard.assess("x", answer="y", run_id="z"), Assessment)


async def guarded_clients(
    client: OpenAI, tasks: AsyncOpenAI, azure: AzureOpenAI
) -> None:
    guarded = guard_client(client, n=3, threshold=0.4, fallback="m", refusal="No.")
    assert_type(guarded, OpenAI)
    assert_type(guard_client(azure), AzureOpenAI)
    guard_client(client, thresold=0.4)  # type: ignore[call-arg]  # a typo
    completion = guarded.chat.completions.create(model="m", messages=[])
    assert_type(completion, ChatCompletion)
    found = assessment(completion)
    assert_type(found, AssessmentRecord)
    assert_type(found["uncertainty"], float | None)
    assert_type(found["cost"]["calls"], int)
    for chunk in guarded.chat.completions.create(model="m", messages=[], stream=True):
        assert_type(chunk, ChatCompletionChunk)
    other = guard_client(tasks, on_uncertain=decide)
    assert_type(other, AsyncOpenAI)
    assert_type(await other.responses.create(model="m", input="x"), Response)
    with OpenAIGuard(client).begin(model="m", messages=[]) as turn:
        assert_type(turn, OpenAITurn)
        assert_type(turn.ask(lambda: completion), ChatCompletion)
        assert_type(turn.finish(completion), Assessment)


def promises(u: FloatArray, paths: list[list[float]]) -> None:
    found = Threshold.for_error_rate(u, [True, False], alpha=0.1, pilot=[0.1])
    assert_type(found, Threshold)
    assert_type(
        found.status, Literal["fixed", "certified", "infeasible", "too_few_labels"]
    )
    assert_type(Threshold.for_coverage([0.1], accept=0.5).labels_needed, int | None)
    assert_type(
        threshold_pair(u, [1], alpha=0.1, beta=0.1), tuple[Threshold, Threshold]
    )
    assert_type(exploratory(u, [1]), tuple[Exploration, ...])
    plan = fit_cascade(paths, [1], rounds=(3, 10), alpha=0.1)
    assert_type(plan, Cascade)
    assert_type(plan.threshold(3), Threshold)
    Threshold.for_error_rate(u, [1], 0.1)  # type: ignore[call-arg]  # alpha by its name
    Threshold.for_joint_error(u, [1])  # type: ignore[call-arg]  # what is bearable?


def agents(model: BaseChatModel) -> None:
    limit = Threshold.fixed(0.4)
    middleware = UncertaintyMiddleware(
        threshold=limit, on_uncertain="interrupt", tool_threshold=0.2, n=3
    )
    standard: AgentMiddleware[Any, Any, Any] = middleware
    assert standard.name
    UncertaintyMiddleware(on_uncertain="ask")  # type: ignore[arg-type]  # no such word
    guard = SNNEGuard(model, tool_calls=Policy(threshold=limit))
    SNNEGuard(model, tool_calls="scored")  # type: ignore[arg-type]  # likewise
    node = uncertainty_node(guard)
    assert_type(node, Runnable[Any, dict[str, Any]])
    state: UncertaintyState = {"messages": [], "uncertainty": []}
    node.invoke(state)
    route = route_on_uncertainty(accept="done", uncertain="person")
    assert_type(route, Callable[[Any], str])


def monitors(model: BaseChatModel, path: Path) -> None:
    store: MonitorStore = SqliteStore(path)
    monitor = Monitor(alpha=0.1, store=store, on_stale="refuse")
    Monitor(on_stale="ignore")  # type: ignore[arg-type]  # no such word
    SNNEGuard(model, monitor=monitor)
    SNNEGuard(model, monitor="monitor.db")  # type: ignore[arg-type]  # a Monitor
    assert_type(monitor.report("id", correct=True), MonitorStatus)
    monitor.report("id")  # type: ignore[call-arg]  # right or wrong?
    assert_type(monitor.status().state, WatchState)
    assert_type(monitor.pending(), tuple[str, ...])
    assert_type(Monitor.for_calibration(path), Monitor)


def evaluations(path: Path) -> None:
    found = evaluate(path, methods=["snne"], draws=10)
    assert_type(found, Evaluation)
    assert_type(to_html(found), str)
    write_report(found, path)
    write_report(found)  # type: ignore[call-arg]  # where to?


def calibrations(path: Path) -> None:
    made = calibrate(path, error_rate=0.1, pilot=path, grader="squad_f1", n=5)
    assert_type(made, Calibration)
    assert_type(calibrate([path, path], coverage=0.8), Calibration)
    found = run_calibration([path], Promise(error_rate=0.1, delta=0.05), tau=None)
    assert_type(found, CalibrationRun)
    assert_type(found.uncertainty, FloatArray)
    calibrate(path, error_rate=0.1, threshold=0.4)  # type: ignore[call-arg]  # its own
    Promise(error="0.1")  # type: ignore[call-arg]  # of what?


def metrics(uncertainty: FloatArray) -> None:
    assert_type(auroc(uncertainty, [True, False]), float)
    assert_type(prr([0.1, 0.2], [1, 0], normalised=True, max_rejection=0.5), float)
    prr([0.1, 0.2], [1, 0])  # type: ignore[call-arg]  # which of the two?
    assert_type(risk_coverage_curve([0.1], [1]), tuple[FloatArray, FloatArray])
    found = bootstrap({"snne": uncertainty}, [1, 0], metrics=["auroc"])
    assert_type(found.interval("snne", "auroc"), Interval)
    assert_type(found.compare("snne", "snne", "auroc").p, float)
    assert_type(cross_fitted(uncertainty, [1, 0]), FloatArray)
    assert_type(reliability([0.5], [1], bins="equal_width"), Reliability)
    reliability([0.5], [1], bins="quantile")  # type: ignore[arg-type]  # no such bins
