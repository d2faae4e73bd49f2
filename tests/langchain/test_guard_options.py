"""How options of a guard and of one call reach the answer and its samples."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import ConfigurableField

from snne_guard import (
    ConfigurationError,
    GuardedChatModel,
    GuardTimeoutError,
    SNNEGuard,
)
from snne_guard.similarity import exact, rouge_l
from tests.support.chat_server import (
    ChatServer,
    always,
    chat_openai,
    cycle,
)
from tests.support.guarding import (
    AGREE,
    DIFFER,
    WAYS,
    WHOLE,
    Witness,
    ask,
    is_sample,
    record,
    split,
)


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
    chosen = guard.on(
        guard.model, method="dse", similarity=exact, on_uncertain="refuse"
    )
    assert repr(chosen) == (
        "SNNEGuard(ChatOpenAI, n=3, method='dse', similarity=Match, threshold=0.5, "
        "on_uncertain='refuse')"
    )


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
