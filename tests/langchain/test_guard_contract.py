"""What a guard gives back: type, metadata, decision, in every way to call it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField

from snne_guard import (
    Assessment,
    ConfigurationError,
    GuardedChatModel,
    GuardTimeoutError,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard.langchain import is_refusal
from snne_guard.similarity import rouge_l
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    always,
    chat_openai,
    cycle,
)
from tests.support.guarding import WAYS, WHOLE, Witness, ask, is_sample, record, split

AGREE = ["Paris", "Paris", "Paris", "Paris"]
DIFFER = ["Lyon", "Nice", "Lille", "Metz"]
METADATA_KEYS = [
    "id",
    "method",
    "score",
    "uncertainty",
    "threshold",
    "certified",
    "decision",
    "n_requested",
    "n_used",
    "reasons",
    "cost",
    "version",
]


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_accepted_answer_is_the_models_own_with_its_assessment(
    way: str, chat_model: bool
) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Capital of France?", way)
    assert message.content == "Paris"
    found = record(message)
    assert list(found) == METADATA_KEYS
    assert json.loads(json.dumps(found)) == found
    assert found["decision"] == "accept"
    assert found["uncertainty"] == 0.0
    assert (found["method"], found["n_requested"], found["n_used"]) == ("wsnne", 5, 5)
    assert found["reasons"] == []
    assert "logprobs" not in message.response_metadata


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_flagged_answer_is_delivered_and_says_so(way: str, chat_model: bool) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Capital of France?", way)
    assert message.content == "Paris"
    assert record(message)["decision"] == "flag"
    assert record(message)["uncertainty"] == 1.0


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_refused_answer_is_replaced_by_a_refusal(way: str, chat_model: bool) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="refuse",
            refusal="No idea.",
        )
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Capital of France?", way)
    assert isinstance(message, AIMessage)
    assert message.text == "No idea."
    assert message.additional_kwargs["refusal"] == "No idea."
    assert record(message)["decision"] == "refuse"
    assert is_refusal(message)
    assert not is_refusal(AIMessage("Paris"))


@pytest.mark.parametrize("way", WAYS)
def test_raise_withholds_by_an_error_without_the_text(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError) as caught:
            ask(guard, "Capital of France?", way)
    error = caught.value
    assert (error.uncertainty, error.threshold) == (1.0, 0.4)
    assert error.assessment_id
    assert "Paris" not in f"{error!r}{error}{vars(error)}"


@pytest.mark.parametrize("way", WAYS)
def test_fallback_answers_instead(way: str) -> None:
    with (
        ChatServer(split("Paris", DIFFER)) as server,
        ChatServer(always("Ask an atlas.")) as other,
    ):
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=chat_openai(other),
        )
        message = ask(guard, "Capital of France?", way)
        assert [request.prompt for request in other.requests] == ["Capital of France?"]
    assert message.content == "Ask an atlas."
    assert record(message)["decision"] == "fallback"


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_may_be_any_runnable_that_gives_text(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=lambda _messages: "Ask a librarian.",
        )
        message = ask(guard, "Capital of France?", way)
    assert isinstance(message, AIMessage)
    assert message.content == "Ask a librarian."


@pytest.mark.parametrize("way", WAYS)
def test_with_fallbacks_takes_over_after_raise(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server, ChatServer(always("B")) as other:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        chain = guard.with_fallbacks([chat_openai(other)]) | StrOutputParser()
        if way == "invoke":
            assert chain.invoke("x") == "B"
        if way == "stream":
            assert "".join(chain.stream("x")) == "B"


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("u_over", "decision"), [(0.0, "accept"), (0.1, "flag"), (0.9, "refuse")]
)
def test_a_pair_of_thresholds_makes_three_bands(
    way: str, u_over: float, decision: str
) -> None:
    samples = {0.0: AGREE, 0.1: ["Paris", "Paris", "Paris", "Lyon"], 0.9: DIFFER}
    with ChatServer(split("Paris", samples[u_over])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=(0.1, 0.9))
        assert record(ask(guard, "x", way))["decision"] == decision


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("given", "decision", "content"),
    [
        ("flag", "flag", "Paris"),
        ("refuse", "refuse", "No."),
        (AIMessage("Well, well."), "fallback", "Well, well."),
    ],
)
def test_a_callable_decides_with_the_assessment_before_it(
    way: str, given: Any, decision: str, content: str
) -> None:
    seen: list[Assessment] = []

    def decide(assessment: Assessment) -> Any:
        seen.append(assessment)
        return given

    witness = Witness()
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain=decide,
            refusal="No.",
            observers=[witness],
        )
        message = ask(guard, "x", way)
    assert (record(message)["decision"], message.content) == (decision, content)
    assert [assessment.uncertainty for assessment in seen] == [1.0]
    assert witness.last.decision == decision


async def test_an_async_callable_decides_in_async_calls() -> None:
    async def decide(_assessment: Assessment) -> str:
        return "refuse"

    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain=decide)
        assert record(await guard.ainvoke("x"))["decision"] == "refuse"


@pytest.mark.parametrize("way", WHOLE)
def test_without_a_threshold_it_measures_only(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        message = ask(SNNEGuard(chat_openai(server)), "x", way)
    found = record(message)
    assert (found["decision"], found["threshold"]) == (None, None)
    assert found["reasons"] == ["no_threshold"]
    assert found["uncertainty"] == 1.0


@pytest.mark.parametrize("way", WHOLE)
def test_samples_are_one_request_at_temperature_one_beside_the_users_own(
    way: str,
) -> None:
    conversation = [
        SystemMessage("Be brief."),
        HumanMessage("Hello"),
        AIMessage("Hi"),
        HumanMessage(
            [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ]
        ),
    ]
    with ChatServer(split("A dot", ["A dot"])) as server:
        model = chat_openai(server, temperature=0.2)
        ask(SNNEGuard(model, n=4), conversation, way)
        answer, samples = sorted(server.requests, key=is_sample)
    assert (answer.temperature, answer.n) == (0.2, 1)
    assert (samples.temperature, samples.n) == (1.0, 3)
    assert answer.messages == samples.messages
    assert len(samples.messages) == 4
    assert not samples.stream


def test_the_paper_mode_draws_ten_samples_and_leaves_the_answer_out() -> None:
    texts = ["Paris", "Lyon", "東京"]
    witness = Witness()
    with ChatServer(split("Nice", texts)) as server:
        guard = SNNEGuard.paper(chat_openai(server), observers=[witness])
        found = record(guard.invoke("x"))
    assert (found["method"], found["n_requested"], found["n_used"]) == ("snne", 10, 10)
    assert "Nice" not in witness.last.scored
    assert witness.last.matrix is not None
    expected = rouge_l(list(witness.last.scored), tokens="rouge")
    assert witness.last.matrix.tolist() == expected.tolist()


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_assess_returns_samples_and_matrix_and_delivers_nothing(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        if way == "invoke":
            assessment = guard.assess("x")
        else:
            assessment = asyncio.run(guard.aassess("x"))
    assert assessment.answer is not None
    assert assessment.answer.text == "Paris"
    assert sorted(sample.text for sample in assessment.samples) == sorted(DIFFER)
    assert assessment.matrix is not None
    assert assessment.matrix.shape == (5, 5)
    assert (assessment.decision, assessment.uncertainty) == ("refuse", 1.0)
    assert assessment.question == "x"


def test_a_chain_with_prompt_and_parser_works_unchanged() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        prompt = ChatPromptTemplate.from_messages([("system", "S"), ("human", "{q}")])
        chain = (
            prompt | SNNEGuard(chat_openai(server), threshold=0.4) | StrOutputParser()
        )
        assert chain.invoke({"q": "Capital?"}) == "Paris"
        assert "".join(chain.stream({"q": "Capital?"})) == "Paris"
        assert chain.batch([{"q": "1"}, {"q": "2"}]) == ["Paris", "Paris"]
        assert {tuple(r.texts) for r in server.requests} == {
            ("S", "Capital?"),
            ("S", "1"),
            ("S", "2"),
        }


def test_options_of_one_call_reach_answer_and_samples() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        SNNEGuard(chat_openai(server)).invoke("x", stop=["\n"], max_tokens=7)
        bodies = [request.body for request in server.requests]
    assert [body["stop"] for body in bodies] == [["\n"], ["\n"]]
    assert {
        body.get("max_tokens", body.get("max_completion_tokens")) for body in bodies
    } == {7}


def test_configurable_fields_change_n_and_threshold_for_one_call() -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4).configurable_fields(
            n=ConfigurableField(id="n"), threshold=ConfigurableField(id="threshold")
        )
        plain = guard.invoke("x")
        changed = guard.invoke("x", {"configurable": {"n": 3, "threshold": 1.0}})
    assert (record(plain)["n_used"], record(plain)["decision"]) == (5, "flag")
    assert (record(changed)["n_used"], record(changed)["decision"]) == (3, "accept")


def test_logprobs_stay_on_the_answer_where_the_user_asked_for_them() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, logprobs=True)
        message = SNNEGuard(model, threshold=0.4).invoke("x")
        streamed = ask(SNNEGuard(model, threshold=0.4), "x", "stream")
    assert message.response_metadata["logprobs"]["content"][0]["token"]
    assert streamed.response_metadata["logprobs"]["content"][0]["token"]


def test_a_seed_is_offset_so_that_samples_differ_and_repeat() -> None:
    with ChatServer(cycle(["a", "b"])) as server:
        model = chat_openai(server, seed=7)
        SNNEGuard(model, n=3).invoke("x")
        seeds = {is_sample(r): r.body.get("seed") for r in server.requests}
    assert seeds == {False: 7, True: 8}


def test_the_repr_names_settings_and_shows_no_secret() -> None:
    with ChatServer(always("x")) as server:
        model = chat_openai(server).bind(api_key="sk-secret")
        guard = SNNEGuard(model, n=3, threshold=0.5, observers=[Witness()])
    assert repr(guard) == "SNNEGuard(ChatOpenAI, n=3, threshold=0.5)"
    assert "sk-secret" not in f"{guard!r} {guard} {GuardedChatModel(guard)!r}"


def test_the_environment_variable_turns_guards_off_visibly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    messages = []
    for way in WAYS:
        with ChatServer(split("Paris", DIFFER)) as server:
            model = chat_openai(server)
            guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
            messages.append(ask(guard, "x", way))
            assert len(server.requests) == 1
    assert {str(message.content) for message in messages} == {"Paris"}
    assert all("disabled" in record(message)["reasons"] for message in messages)
    assert {record(message)["decision"] for message in messages} == {"unscored"}


def test_a_share_of_calls_is_left_unsampled_and_says_so() -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, on_uncertain="refuse", sample_rate=0.0
        )
        found = record(guard.invoke("x"))
        assert len(server.requests) == 1
    assert (found["decision"], found["reasons"]) == ("unscored", ["not_sampled"])


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("given", [HumanMessage("Ask."), "Ask.", 42])
def test_what_a_fallback_gives_becomes_an_answer(way: str, given: Any) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=lambda _messages: given,
        )
        message = ask(guard, "x", way)
    assert isinstance(message, AIMessage)
    assert message.content == ("42" if given == 42 else "Ask.")


@pytest.mark.parametrize("way", WHOLE)
def test_a_model_that_is_chosen_by_the_configuration_is_the_one_that_is_sampled(
    way: str,
) -> None:
    with ChatServer(split("Paris", AGREE)) as one, ChatServer(split("B", ["B"])) as two:
        model = chat_openai(one).configurable_alternatives(
            ConfigurableField(id="which"), default_key="one", two=chat_openai(two)
        )
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        message = ask(guard, "x", way, {"configurable": {"which": "two"}})
        assert (len(one.requests), len(two.requests)) == (0, 2)
    assert (message.content, record(message)["decision"]) == ("B", "accept")


@pytest.mark.parametrize("way", WHOLE)
def test_init_chat_model_with_its_model_left_open_is_guarded(way: str) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = init_chat_model(
            configurable_fields=("model", "temperature"),
            model_provider="openai",
            base_url=server.url,
            api_key="test",
        )
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        message = ask(guard, "x", way, {"configurable": {"model": "chosen"}})
        assert {request.body["model"] for request in server.requests} == {"chosen"}
    assert record(message)["decision"] == "accept"


def test_types_of_input_and_output_are_the_models() -> None:
    with ChatServer(always("x")) as server:
        model = chat_openai(server)
        guard = SNNEGuard(model)
        assert guard.InputType == model.InputType
        assert guard.OutputType is AIMessage
        assert guard.get_input_jsonschema() == {
            **model.get_input_jsonschema(),
            "title": "SNNEGuardInput",
        }
        assert not SNNEGuard.is_lc_serializable()


def test_a_copy_with_other_options_has_them() -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server))
        copied = guard.model_copy(update={"threshold": 0.1, "on_uncertain": "refuse"})
        assert record(copied.invoke("x"))["decision"] == "refuse"
        assert record(guard.invoke("x"))["decision"] is None
    with pytest.raises(ConfigurationError):
        guard.model_copy(update={"n": 0})


class TeamGuard(SNNEGuard):
    """A guard of a user's own, with a field of its own."""

    team: str = "none"


def test_a_subclass_may_have_fields_of_its_own() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        guard = TeamGuard(model=chat_openai(server), team="search", threshold=0.4)
        other = guard.on(chat_openai(server), n=3)
        assert (type(other), other.team, other.n) == (TeamGuard, "search", 3)
        assert record(other.invoke("x"))["decision"] == "accept"


def test_a_guard_made_from_another_may_have_other_observers() -> None:
    one, two = Witness(), Witness()
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server)
        guard = SNNEGuard(model, observers=[one])
        guard.on(model, observers=(two,)).invoke("x")
        guard.on(model).invoke("x")
    assert (len(one.assessments), len(two.assessments)) == (1, 1)


@pytest.mark.parametrize("way", WHOLE)
def test_an_empty_answer_that_was_cut_off_is_never_accepted(way: str) -> None:
    cut = Reply(texts=["<think>let me"], finish_reasons=["length"])
    for include_answer in (True, False):
        with ChatServer(split(lambda _request: cut, AGREE)) as server:
            guard = SNNEGuard(
                chat_openai(server),
                threshold=1.0,
                on_uncertain="refuse",
                include_answer=include_answer,
            )
            found = record(ask(guard, "x", way))
        assert found["decision"] == "refuse"
        assert "answer_reasoning_only" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_agreement_that_the_log_probabilities_rule_out_is_no_confidence(
    way: str,
) -> None:
    unlikely = Reply(texts=["one two three four"], logprobs=[[-3.0] * 4])
    with ChatServer([unlikely]) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["uncertainty"]) == ("refuse", None)
    assert found["reasons"] == ["suspect_agreement"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_waits_for_no_sample_and_counts_those_that_came(way: str) -> None:
    gate = Gate()
    script = split(always("", status=401), always("Paris", gate=gate))
    with ChatServer(script) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, fallback=lambda _messages: "B"
        )
        message = ask(guard, "x", way)
        gate.open()
    assert message.content == "B"
    assert record(message)["cost"]["calls"] == 0


@pytest.mark.parametrize("way", ["ainvoke", "invoke", "stream", "astream"])
def test_the_limit_on_requests_holds_for_answers_too(way: str) -> None:
    with ChatServer(always("Paris", delay=0.05)) as server:
        guard = SNNEGuard(chat_openai(server), n=3, max_concurrency=1)
        ask(guard, "x", way)
        assert server.peak == 1


@pytest.mark.parametrize("way", ["ainvoke", "invoke", "stream", "astream"])
def test_waiting_for_a_place_keeps_to_the_time_limit(way: str) -> None:
    with ChatServer(split("Paris", always("", stall=True))) as server:
        guard = SNNEGuard(chat_openai(server), n=3, max_concurrency=1, timeout=1.0)
        limiter = guard.shared.limiter
        with limiter.hold(), pytest.raises(GuardTimeoutError):
            ask(guard, "x", way)


@pytest.mark.parametrize("fallback", ["lambda", "model"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_usage_of_a_guarded_chat_model_counts_its_fallback(
    way: str, fallback: str
) -> None:
    handler = UsageMetadataCallbackHandler()
    with (
        ChatServer(split("Paris", DIFFER)) as server,
        ChatServer(always("Ask an atlas.")) as other,
    ):
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=chat_openai(other) if fallback == "model" else lambda _m: "B",
        )
        message = ask(GuardedChatModel(guard), "x", way, {"callbacks": [handler]})
        billed = server.billed.completion_tokens + other.billed.completion_tokens
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == billed
    counted = handler.usage_metadata.values()
    assert sum(usage["output_tokens"] for usage in counted) == billed
