"""SNNEGuard as its users see it: options, results, and every place a model stands."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import LangChainException
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import (
    BaseChatModel,
    FakeListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from snne_guard import (
    Assessment,
    ConfigurationError,
    InputError,
    Prices,
    SamplingError,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard.decision import Calibration, Threshold
from snne_guard.langchain import is_refusal
from tests.langchain.support import (
    CALLS,
    Watcher,
    ask,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.openai.support import Answer, Asked, Server, always, split

MODEL = FakeListChatModel(responses=["Paris"])
APART = ("Lyon", "Nice", "Metz", "Brest")
WHOLE = ("invoke", "ainvoke")
REFUSAL = "I am not certain enough of the answer to give one."


# -- Bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 1}, "n must be a whole number of at least 2; got 1"),
        ({"n": 2.5}, "got 2.5"),
        ({"n": True}, "got True"),
        ({"temperature": 0}, "temperature must be a number above 0; got 0"),
        ({"temperature": float("nan")}, "temperature must be a number above 0"),
        ({"threshold": 1.5}, r"threshold must be a number in \[0, 1\]; got 1.5"),
        ({"threshold": "low"}, "got 'low'"),
        ({"threshold": True}, "got True"),
        ({"threshold": (0.9,)}, r"a pair \(accept, refuse\); got 1 values"),
        ({"threshold": (0.9, 0.1)}, "refuse_above=0.1, threshold=0.9"),
        ({"on_uncertain": "refuse"}, "on_uncertain='refuse' needs a threshold"),
        ({"on_uncertain": "shrug", "threshold": 0.4}, "one of 'flag'.*got 'shrug'"),
        ({"on_uncertain": 3, "threshold": 0.4}, "must be a plain function; got 3"),
        ({"on_uncertain": "fallback", "threshold": 0.4}, "needs a fallback; got none"),
        ({"fallback": "x"}, "fallback must be a runnable; got str"),
        ({"refusal": 3}, "refusal must be a text; got int"),
        ({"on_error": "pass"}, "on_error must be one of .*; got 'pass'"),
        ({"tool_calls": "maybe"}, "tool_calls must be one of .*; got 'maybe'"),
        ({"method": "magic"}, "expected method .*'snne'.*'magic'"),
        ({"method": 3}, r"expected method 'auto', a Method or one of .*, got 3"),
        ({"method": "eigen_score"}, "'eigen_score', which needs hidden_states"),
        ({"method": "ne", "threshold": 0.4}, "bounded; got 'ne'"),
        ({"similarity": "magic"}, "expected similarity .*, got 'magic'"),
        ({"similarity": 3}, "got 3"),
        ({"question": "Who?"}, "question must be a plain function; got 'Who"),
        ({"min_samples": 6}, "at least 2 and at most 5; got 6"),
        ({"schedule": "later"}, "schedule must be one of .*; got 'later'"),
        ({"timeout": 0}, "timeout must be a number above 0; got 0"),
        ({"sample_timeout": "1"}, "sample_timeout must be a number above 0; got '1'"),
        ({"max_concurrency": 0}, "max_concurrency must be .* at least 1; got 0"),
        ({"sample_rate": 2}, r"sample_rate must be a number in \[0, 1\]; got 2"),
        ({"prices": 3}, "prices must be Prices; got int"),
        ({"observers": Watcher()}, "a list of observers; got Watcher"),
        (
            {"observers": [print]},
            "on_assessment.*; builtin_function_or_method has none",
        ),
        ({"calibration": 3}, "calibration must be a Calibration or its path; got int"),
        ({"treshold": 0.4}, "SNNEGuard has no option 'treshold'"),
        ({"stop": ["."]}, "SNNEGuard has no option 'stop'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        SNNEGuard(MODEL, **options)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (None, "a guard needs a chat model: .*got NoneType"),
        ("gpt-5", "got str"),
        (object(), "got object"),
        (RunnableLambda(str), "got RunnableLambda"),
        (MODEL | StrOutputParser(), "got RunnableSequence.* prompt | guard | parser"),
        (
            MODEL.configurable_fields(responses=ConfigurableField(id="r")),
            "around a configurable model .*on the guard",
        ),
        (init_chat_model, "got function"),
    ],
)
def test_what_is_no_chat_model_is_refused(model: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        SNNEGuard(model)


def test_a_model_that_init_chat_model_leaves_open_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give init_chat_model a model"):
        SNNEGuard(init_chat_model())


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_uncertain": lambda _: "shrug"}, "must return one of .* another str$"),
        ({"on_uncertain": lambda _: 3}, "a message or a text; got int"),
        ({"on_uncertain": lambda _: "fallback"}, "but the guard has none"),
        (
            {"on_uncertain": "fallback", "fallback": RunnableLambda(lambda _: [1])},
            "a message or a text; got list",
        ),
        ({"question": lambda _: 3}, "the question as a text, got int"),
    ],
)
def test_what_a_function_of_the_users_returns_is_checked(
    way: str, options: Any, said: str
) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, **{"threshold": 0.1, **options})
        with pytest.raises(ConfigurationError, match=said):
            ask(guard, way)


# -- A guard is a value ----------------------------------------------------------------


def test_a_guard_cannot_be_changed() -> None:
    guard = SNNEGuard(MODEL, threshold=0.4)
    for name in ("n", "threshold", "guarded", "observers"):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(guard, name, 3)
    assert (guard.n, guard.settings.n) == (5, 5)


def test_a_copy_with_other_options_is_checked_and_leaves_the_first_alone() -> None:
    guard = SNNEGuard(MODEL, threshold=0.4)
    other = guard.model_copy(update={"n": 3, "on_uncertain": "refuse"})
    assert (other.n, other.settings.n, other.settings.on_uncertain) == (3, 3, "refuse")
    assert (guard.n, guard.on_uncertain) == (5, "flag")
    with pytest.raises(ConfigurationError, match="got 1"):
        guard.model_copy(update={"n": 1})


@pytest.mark.parametrize(
    "remade",
    [copy.copy, copy.deepcopy, lambda guard: pickle.loads(pickle.dumps(guard))],  # noqa: S301 - our own
)
def test_a_copied_or_pickled_guard_works(remade: Callable[[Any], Any]) -> None:
    made = remade(SNNEGuard(MODEL, n=3, threshold=0.4, on_uncertain="refuse"))
    assert made.invoke("Where?").content == "Paris"
    assert (made.n, made.settings.on_uncertain) == (3, "refuse")


def test_the_repr_shows_options_and_no_secret() -> None:
    model = ChatOpenAI(model="m", api_key="sk-hidden")  # type: ignore[arg-type]  # a text will do
    shown = f"{SNNEGuard(model, threshold=0.4)!r}"
    assert "sk-hidden" not in shown
    assert "threshold=0.4" in shown


def test_a_subclass_may_have_fields_of_its_own() -> None:
    class Named(SNNEGuard):
        team: str = "A"

    make: Any = Named  # mypy asks a subclass for every field
    guard = make(MODEL, n=3, team="B")
    assert (guard.team, guard.n) == ("B", 3)
    assert guard.model_copy(update={"n": 4}).team == "B"


def test_the_callers_model_is_left_as_it_is() -> None:
    with Server(split("Paris", *APART)) as server:
        model = chat_openai(server, temperature=0.0, seed=7)
        before = model.model_copy()
        for way in CALLS:
            ask(SNNEGuard(model), way)
        assert {a.body.get("seed") for a in server.answers} == {7}
        assert {a.body.get("seed") for a in server.samples} == {None}
    assert model == before


def test_it_stands_for_the_model_that_it_guards() -> None:
    model = ChatOpenAI(model="gpt-4o-mini", api_key="test", temperature=0.2)  # type: ignore[arg-type]  # a text will do
    for made in (model, model.bind(stop=["."]), model.with_retry()):
        guard = SNNEGuard(made)
        assert isinstance(guard, BaseChatModel)
        assert guard.model_name == "gpt-4o-mini"
        assert guard.profile == model.profile
        seen = dict(guard._get_ls_params())
        assert (seen["ls_provider"], seen["ls_model_name"]) == ("openai", "gpt-4o-mini")
        assert seen["ls_temperature"] == 0.2


class Counting(FakeListChatModel):
    """Counts words as tokens."""

    def get_num_tokens(self, text: str) -> int:
        return len(text.split())


def test_tokens_are_counted_as_the_model_counts_them() -> None:
    guard = SNNEGuard(Counting(responses=["x"]))
    assert guard.get_num_tokens("one two three") == 3
    assert guard.get_num_tokens_from_messages([HumanMessage("one two")]) == 3


# -- What is delivered -----------------------------------------------------------------

METADATA = {
    *("id", "method", "score", "uncertainty", "threshold", "certified", "p_wrong"),
    *("decision", "n_requested", "n_used", "reasons", "cost", "version"),
}


@pytest.mark.parametrize("way", CALLS)
def test_an_accepted_answer_carries_its_assessment(way: str) -> None:
    with Server(always()) as server:
        message = ask(guarded(server, threshold=0.4, on_uncertain="refuse"), way)
    found = metadata_of(message)
    assert message.content == "Paris"
    assert set(found) == METADATA
    assert (found["decision"], found["uncertainty"], found["method"]) == (
        "accept",
        0.0,
        "wsnne",
    )
    assert (found["n_requested"], found["n_used"], found["reasons"]) == (5, 5, [])
    assert (found["threshold"], found["certified"]) == (0.4, False)
    assert not is_refusal(message)
    assert message.response_metadata["finish_reason"] == "stop"


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize(
    ("options", "decision", "says"),
    [
        ({"on_uncertain": "flag"}, "flag", "Paris"),
        ({"on_uncertain": "refuse"}, "refuse", REFUSAL),
        ({"on_uncertain": "refuse", "refusal": "No."}, "refuse", "No."),
        ({"threshold": (0.1, 0.5)}, "refuse", REFUSAL),
        ({"threshold": (0.1, 1.0)}, "flag", "Paris"),
        ({"on_uncertain": lambda _: "flag"}, "flag", "Paris"),
        ({"on_uncertain": lambda _: "refuse"}, "refuse", REFUSAL),
        ({"on_uncertain": lambda _: AIMessage("Hm.")}, "flag", "Hm."),
        (
            {"on_uncertain": "fallback", "fallback": MODEL.bind()},
            "fallback",
            "Paris",
        ),
        (
            {"on_uncertain": "fallback", "fallback": RunnableLambda(lambda _: "Ask.")},
            "fallback",
            "Ask.",
        ),
        ({"threshold": None}, None, "Paris"),
    ],
)
def test_an_uncertain_answer_is_dealt_with_as_told(
    way: str, options: Any, decision: str | None, says: str
) -> None:
    watcher = Watcher()
    with Server(split("Paris", *APART)) as server:
        settings = {"threshold": 0.4, "observers": [watcher], **options}
        message = ask(guarded(server, **settings), way)
    found = metadata_of(message)
    assert (found["decision"], message.text) == (decision, says)
    assert found["uncertainty"] == 1.0
    assert is_refusal(message) is (decision == "refuse")
    (assessment,) = watcher.seen
    assert (assessment.id, assessment.decision) == (found["id"], decision)
    assert found["reasons"] == (["no_threshold"] if decision is None else [])


@pytest.mark.parametrize("way", CALLS)
def test_raise_raises_an_error_of_langchain_too(way: str) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError) as caught:
            ask(guard, way)
    error = caught.value
    assert isinstance(error, LangChainException)
    assert (error.uncertainty, error.threshold) == (1.0, 0.4)
    assert not error.is_retryable
    assert (
        str(error) == "the answer has an uncertainty of 1.000; accepted is at most 0.4"
    )


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("on_error", "on_uncertain", "decision"),
    [
        ("uncertain", "flag", "flag"),
        ("uncertain", "refuse", "refuse"),
        ("accept", "refuse", "unscored"),
        ("raise", "flag", None),
    ],
)
def test_an_answer_that_cannot_be_scored_is_dealt_with_as_told(
    way: str, on_error: Any, on_uncertain: Any, decision: str | None
) -> None:
    def script(asked: Asked) -> Answer:
        return Answer(status=403) if asked.is_sample else Answer()

    with Server(script) as server:
        guard = guarded(
            server, threshold=0.4, on_error=on_error, on_uncertain=on_uncertain
        )
        if decision is None:
            with pytest.raises(SamplingError) as caught:
                ask(guard, way)
            assert (caught.value.n_used, caught.value.needed) == (1, 3)
            assert "PermissionDenied" in caught.value.causes[0]
            return
        found = metadata_of(ask(guard, way))
    assert (found["decision"], found["uncertainty"]) == (decision, None)
    assert found["reasons"] == ["samples_failed", "too_few_samples"]


@pytest.mark.parametrize("way", CALLS)
def test_a_fallback_steps_in_where_the_model_fails(way: str) -> None:
    def fallen(messages: Any) -> AIMessage:
        return AIMessage(f"Heard: {messages[-1].text}")

    with Server(always(status=403)) as server:
        guard = guarded(server, fallback=RunnableLambda(fallen))
        message = ask(guard, way)
    assert message.text == "Heard: Where?"
    found = metadata_of(message)
    assert (found["decision"], found["reasons"]) == ("fallback", ["answer_failed"])


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_that_is_a_guard_may_refuse_too(way: str) -> None:
    with Server(split("Paris", *APART)) as server:
        second = guarded(server, threshold=0.1, on_uncertain="refuse", refusal="No.")
        guard = guarded(server, threshold=0.4, on_uncertain="fallback", fallback=second)
        message = ask(guard, way)
    assert message.text == "No."
    assert is_refusal(message)
    found = metadata_of(message)
    assert (found["decision"], found["fallback"]["decision"]) == ("fallback", "refuse")


def test_chunks_flow_where_nothing_can_be_withheld_else_there_is_one() -> None:
    script = always("one two three")
    with Server(script) as server:
        flowing = list(guarded(server, threshold=0.4).stream("Count."))
        held = list(guarded(server, threshold=0.4, on_uncertain="refuse").stream("x"))
    texts = [chunk.text for chunk in flowing if chunk.text]
    assert texts == ["one", " two", " three"]
    assert metadata_of(flowing[-1])["decision"] == "accept"
    assert [chunk.chunk_position for chunk in flowing[:-1]] == [None] * (
        len(flowing) - 1
    )
    assert [chunk.text for chunk in held if chunk.text] == ["one two three"]
    assert metadata_of(held[0])["decision"] == "accept"


def test_the_first_chunk_comes_before_the_samples() -> None:
    def script(asked: Asked) -> Answer:
        return Answer(delay=0.5) if asked.is_sample else Answer(texts=["one two"])

    with Server(script) as server:
        watcher = Watcher()
        stream = guarded(server, observers=[watcher]).stream("Count.")
        while not next(stream).text:
            pass
        assert watcher.seen == []
        assert list(stream)
        assert len(watcher.seen) == 1


# -- What is asked of the provider -----------------------------------------------------


def test_the_answer_keeps_the_users_settings_and_samples_are_hot() -> None:
    with Server(always()) as server:
        model = chat_openai(server, temperature=0.0, seed=7, max_completion_tokens=9)
        SNNEGuard(model, temperature=0.8).invoke("Where?", stop=["."], user="u")
    answer, sample = sorted(server.requests, key=lambda asked: asked.n)
    assert (answer.body["temperature"], answer.body["seed"]) == (0.0, 7)
    assert (sample.body["temperature"], sample.n, "seed" in sample.body) == (
        0.8,
        4,
        False,
    )
    for asked in (answer, sample):
        assert (asked.body["stop"], asked.body["user"]) == (["."], "u")
        assert asked.body["max_completion_tokens"] == 9


def test_paper_draws_ten_samples_and_leaves_the_answer_out() -> None:
    watcher = Watcher()
    with Server(split("Paris", *APART)) as server:
        guard = SNNEGuard.paper(chat_openai(server), observers=[watcher])
        found = metadata_of(guard.invoke("Where?"))
        assert [asked.n for asked in server.samples] == [10]
        assert not any(asked.logprobs for asked in server.requests)
    assert (found["method"], found["n_used"]) == ("snne", 10)
    (assessment,) = watcher.seen
    assert assessment.matrix is not None
    assert assessment.matrix.shape == (10, 10)
    assert "Paris" not in assessment.scored


def test_answer_first_draws_samples_after_the_answer() -> None:
    with Server(lambda _: Answer(delay=0.05)) as server:
        guarded(server, schedule="answer_first").invoke("Where?")
        assert [asked.is_sample for asked in server.requests] == [False, True]


def test_sample_rate_leaves_calls_unsampled_and_says_so() -> None:
    with Server(always()) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="refuse", sample_rate=0.0)
        message = guard.invoke("Where?")
        assert len(server.requests) == 1
    found = metadata_of(message)
    assert (found["decision"], found["reasons"]) == ("unscored", ["not_sampled"])
    assert message.text == "Paris"


@pytest.mark.parametrize("way", CALLS)
def test_a_disabled_guard_is_its_bare_model_visibly(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.1, on_uncertain="raise")
        message = ask(guard, way)
        assert [asked.logprobs for asked in server.requests] == [False]
    found = metadata_of(message)
    assert (message.text, found["reasons"]) == ("Paris", ["disabled"])
    assert found["decision"] == "unscored"


def test_cost_is_that_of_every_draw_in_money_too() -> None:
    prices = Prices(prompt=2.0, completion=10.0, cached=1.0)
    with Server(always()) as server:
        message = guarded(server, prices=prices).invoke("Where?")
    cost = metadata_of(message)["cost"]
    assert {name: cost[name] for name in cost if name not in {"seconds", "money"}} == {
        "calls": 2,
        "attempts": 2,
        "prompt_tokens": 10,
        "cached_tokens": 6,
        "completion_tokens": 5,
        "lower_bound": False,
    }
    assert cost["money"] == pytest.approx((4 * 2.0 + 6 * 1.0 + 5 * 10.0) / 1e6)
    assert 0 < cost["seconds"] < 10


@pytest.mark.parametrize("way", WHOLE)
def test_a_cache_never_answers_for_the_model(way: str) -> None:
    set_llm_cache(InMemoryCache())
    try:
        with Server(split("Paris", *APART)) as server:
            guard = guarded(server)
            found = [metadata_of(ask(guard, way)) for _ in "12"]
            assert len(server.requests) == 4
    finally:
        set_llm_cache(None)
    assert [each["uncertainty"] for each in found] == [1.0, 1.0]
    assert found[0]["id"] != found[1]["id"]


# -- The question ----------------------------------------------------------------------

CONTEXT = "A long retrieved page about France. " * 100


@pytest.mark.parametrize("way", WHOLE)
def test_the_question_is_the_users_last_message_unless_told(way: str) -> None:
    watcher = Watcher()
    asked = [SystemMessage("Be brief."), HumanMessage("Hi"), HumanMessage("Where?")]
    with Server(always()) as server:
        guard = guarded(server, observers=[watcher])
        ask(guard, way, said=asked)
        metadata = {"metadata": {"snne_guard_question": "Which town?"}}
        ask(guard, way, metadata, said=asked)
        other = guarded(
            server, observers=[watcher], question=lambda said: said[0].text.upper()
        )
        ask(other, way, said=asked)
        ask(other, way, metadata, said=asked)
    questions = [assessment.question for assessment in watcher.seen]
    assert questions == ["Where?", "Which town?", "BE BRIEF.", "Which town?"]


def test_a_long_message_warns_once_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="snne_guard")
    guard = SNNEGuard(MODEL)
    for _ in range(2):
        guard.invoke(CONTEXT)
    (record,) = caplog.records
    assert "question=" in record.getMessage()
    assert "France" not in record.getMessage()
    SNNEGuard(MODEL, question=lambda _: "Where?").invoke(CONTEXT)
    assert len(caplog.records) == 1


# -- assess ----------------------------------------------------------------------------


def assessed(guard: SNNEGuard, way: str, answer: Any = None) -> Assessment:
    if way == "ainvoke":
        return in_loop(guard.aassess("Where?", answer))
    return guard.assess("Where?", answer)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("policy", ["flag", "refuse", "raise"])
def test_assess_returns_everything_and_raises_nothing(way: str, policy: Any) -> None:
    with Server(split("Paris", *APART)) as server:
        found = assessed(guarded(server, threshold=0.4, on_uncertain=policy), way)
    assert found.answer is not None
    assert found.answer.text == "Paris"
    assert sorted(sample.text for sample in found.samples) == sorted(APART)
    assert found.matrix is not None
    assert found.matrix.shape == (5, 5)
    assert found.scored[0] == "Paris"
    assert (found.uncertainty, found.question) == (1.0, "Where?")
    assert found.decision == ("flag" if policy == "flag" else "refuse")


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("answer", ["Paris", AIMessage("Paris")])
def test_assess_draws_only_samples_for_an_answer_that_exists(
    way: str, answer: Any
) -> None:
    with Server(split("never asked", "Paris")) as server:
        found = assessed(guarded(server, threshold=0.4), way, answer)
        assert [asked.is_sample for asked in server.requests] == [True]
    assert (found.decision, found.n_used, found.cost.calls) == ("accept", 5, 1)


@pytest.mark.parametrize("way", WHOLE)
def test_assess_raises_the_models_own_error(way: str) -> None:
    import openai

    def never_asked(_: Any) -> str:
        return "Paris"

    for fallback in (None, RunnableLambda(never_asked)):
        with Server(always(status=403)) as server, pytest.raises(openai.OpenAIError):
            assessed(guarded(server, fallback=fallback), way)


# -- A calibration ---------------------------------------------------------------------

SETTINGS: dict[str, Any] = {
    "model": "test-model",
    "n": 3,
    "include_answer": True,
    "temperature": 0.8,
    "method": "snne",
    "similarity": "rouge_l",
    "tau": 1.0,
    "anchor": 0.0,
    "answer_temperature": None,
    "max_tokens": 50,
}


def calibration(**changes: Any) -> Calibration:
    return Calibration(settings=SETTINGS | changes, threshold=Threshold.fixed(0.4))


def test_a_guard_starts_from_its_calibration(tmp_path: Path) -> None:
    made = calibration()
    made.save(tmp_path / "guard.json")
    with Server(always()) as server:
        model = chat_openai(server, max_completion_tokens=50)
        for given in (made, tmp_path / "guard.json", str(tmp_path / "guard.json")):
            guard = SNNEGuard.from_calibration(model, given, on_uncertain="refuse")
            found = metadata_of(guard.invoke("Where?"))
            assert (found["decision"], found["threshold"]) == ("accept", 0.4)
            assert (found["n_requested"], found["method"]) == (3, "snne")
            assert found["reasons"] == []
        assert {asked.body["temperature"] for asked in server.samples} == {0.8}


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"model": "another"}, {}, "model"),
        ({}, {"n": 4}, r"\bn\b"),
        ({}, {"temperature": 1.0}, "temperature"),
        ({}, {"method": "wsnne"}, "method"),
        ({}, {"similarity": "exact"}, "similarity"),
        ({"max_tokens": 9}, {}, "max_tokens"),
        ({"answer_temperature": 0.3}, {}, "answer_temperature"),
        ({}, {"threshold": 0.2}, "either threshold or calibration"),
    ],
)
def test_a_guard_that_differs_from_its_calibration_does_not_start(
    changes: Any, options: Any, said: str
) -> None:
    with Server(always()) as server:
        model = chat_openai(server, max_completion_tokens=50)
        with pytest.raises(ConfigurationError, match=said):
            SNNEGuard.from_calibration(model, calibration(**changes), **options)


def test_a_damaged_calibration_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    calibration().save(path)
    path.write_text(path.read_text().replace("0.4", "0.9"))
    with pytest.raises(InputError):
        SNNEGuard.from_calibration(MODEL, path)


@pytest.mark.parametrize("way", WHOLE)
def test_a_call_that_is_not_like_the_calibration_is_uncertain(way: str) -> None:
    with Server(always()) as server:
        model = chat_openai(server, max_completion_tokens=50)
        guard = SNNEGuard.from_calibration(model, calibration(), on_uncertain="refuse")
        hot = guard.bind(temperature=1.9)
        found = metadata_of(ask(hot, way))
    assert (found["decision"], found["reasons"]) == ("refuse", ["uncalibrated"])


# -- Where a model stands --------------------------------------------------------------

WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "bind": lambda model: model.bind(stop=["!"]),
    "bind_tools": lambda model: model.bind_tools([]),
    "with_config": lambda model: model.with_config(tags=["t"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=2),
    "with_fallbacks": lambda model: model.with_fallbacks([MODEL]),
    "all of them": lambda model: (
        model.bind(stop=["!"])
        .with_config(tags=["t"])
        .with_retry(stop_after_attempt=2)
        .with_fallbacks([model.bind(stop=["?"])])
    ),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_guard_stands_around_a_wrapped_model(way: str, wrapper: str) -> None:
    with Server(split("Paris", *APART)) as server:
        model = WRAPPERS[wrapper](chat_openai(server))
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        message = ask(guard, way)
        stops = {str(asked.body.get("stop")) for asked in server.requests}
    assert metadata_of(message)["decision"] == "refuse"
    assert stops == {"['!']" if wrapper in {"bind", "all of them"} else "None"}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_wrapper_stands_around_a_guard(way: str, wrapper: str) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="refuse")
        message = ask(WRAPPERS[wrapper](guard), way)
    assert metadata_of(message)["decision"] == "refuse"


@pytest.mark.parametrize("way", WHOLE)
def test_with_fallbacks_takes_over_after_raise(way: str) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="raise")
        careful = guard.with_fallbacks([FakeListChatModel(responses=["Ask."])])
        assert ask(careful, way).text == "Ask."


@pytest.mark.parametrize("way", WHOLE)
def test_with_retry_around_a_guard_asks_again_as_it_is_told(way: str) -> None:
    counts = {"samples": 0}

    def script(asked: Asked) -> Answer:
        counts["samples"] += asked.is_sample
        apart = asked.is_sample and counts["samples"] == 1
        return Answer(texts=APART if apart else ["Paris"])

    with Server(script) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="raise")
        again = guard.with_retry(
            retry_if_exception_type=(UncertainAnswerError,),
            wait_exponential_jitter=False,
        )
        assert ask(again, way).text == "Paris"
        assert counts["samples"] == 2


def test_a_chain_with_prompt_and_parser_works_unchanged() -> None:
    prompt = ChatPromptTemplate.from_messages([("user", "Capital of {country}?")])
    with Server(always()) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="refuse")
        chain = prompt | guard | StrOutputParser()
        assert chain.invoke({"country": "France"}) == "Paris"
        assert in_loop(chain.ainvoke({"country": "France"})) == "Paris"
        assert chain.batch([{"country": "France"}] * 3) == ["Paris"] * 3
        assert "".join(chain.stream({"country": "France"})) == "Paris"


def test_configurable_fields_and_alternatives_are_chosen_on_the_guard() -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4)
        chosen = guard.configurable_fields(
            n=ConfigurableField(id="n"), threshold=ConfigurableField(id="limit")
        ).configurable_alternatives(
            ConfigurableField(id="which"), other=SNNEGuard(MODEL)
        )
        config: Any = {"configurable": {"n": 3, "limit": 1.0}}
        found = metadata_of(chosen.invoke("Where?", config))
        assert (found["n_requested"], found["decision"]) == (3, "accept")
        assert metadata_of(chosen.invoke("Where?"))["decision"] == "flag"
        other: Any = {"configurable": {"which": "other"}}
        assert metadata_of(chosen.invoke("Where?", other))["method"] == "snne"
        bad: Any = {"configurable": {"n": 1}}
        with pytest.raises(ConfigurationError, match="got 1"):
            chosen.invoke("Where?", bad)


def test_what_a_call_sets_overrides_what_is_bound() -> None:
    with Server(always()) as server:
        guard = SNNEGuard(chat_openai(server).bind(stop=["!"], user="a"))
        guard.bind(user="b").invoke("Where?", stop=["?"])
        for asked in server.requests:
            assert (asked.body["stop"], asked.body["user"]) == (["?"], "b")


def test_a_guard_in_a_guard_is_asked_like_a_model() -> None:
    with Server(always()) as server:
        guard = SNNEGuard(guarded(server, n=2), n=3, threshold=0.4)
        found = metadata_of(guard.invoke("Where?"))
        assert len(server.requests) == 6
    assert (found["decision"], found["reasons"]) == ("accept", ["temperature_unset"])


def test_draws_are_made_on_copies_of_a_model_that_keeps_count() -> None:
    """So a FakeListChatModel says the first thing always, one with an iterator not."""
    counting = FakeListChatModel(responses=["Paris", *APART])
    assert metadata_of(SNNEGuard(counting, n=3).invoke("x"))["uncertainty"] == 0.0
    assert counting.i == 0
    going_on = GenericFakeChatModel(messages=iter(["Paris", *APART]))
    assert metadata_of(SNNEGuard(going_on, n=3).invoke("x"))["uncertainty"] == 1.0


def test_what_was_learnt_is_shared_with_copies() -> None:
    with Server(always(logprobs=False)) as server:
        guard = guarded(server, threshold=0.4)
        first = metadata_of(guard.invoke("Where?"))
        server.script = always()
        second = metadata_of(guard.model_copy(update={"n": 3}).invoke("Where?"))
        assert not server.requests[-1].logprobs
    assert [first["reasons"], second["reasons"]] == [["logprobs_missing"], []]
    assert [first["method"], second["method"]] == ["snne", "snne"]
