"""Nothing that goes wrong in a shadow reaches the run that it watches."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from snne_guard import Assessment, Budget, ConfigurationError, SNNEGuard
from snne_guard.assess import observe
from snne_guard_integrations import _backlog
from snne_guard_integrations.callback import ShadowCounts, SNNECallbackHandler
from tests.support.chat_server import ChatServer, Gate, Reply, chat_openai, error
from tests.support.guarding import Witness, split, until

ASKED = "What is the capital of Ebnat?"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(split("Lyon", ["Paris"])) as server:
        yield server


def guard_on(model: Any, **options: Any) -> SNNEGuard:
    settings = {"n": 3, "method": "snne", "threshold": 0.2, **options}
    return SNNEGuard(model, **settings)


def whole(counts: ShadowCounts) -> bool:
    """Return whether every run is in one place."""
    ended = counts.assessed + counts.failed + counts.dropped + counts.waiting
    return counts.seen == counts.skipped + counts.taken and counts.taken == ended


def test_a_full_queue_drops_and_counts_and_holds_nobody_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    samples = Reply(texts=("Paris",), gate=gate)
    with ChatServer(split("Lyon", lambda _request: samples)) as server:
        model = chat_openai(server)
        handler = SNNECallbackHandler(guard_on(model), max_queue=2)
        config: Any = {"callbacks": [handler]}
        model.invoke(ASKED, config)
        server.wait_until(requests=2)  # one is being assessed, and held there
        for _ in range(5):
            assert model.invoke(ASKED, config).text == "Lyon"
        held = handler.counts
        assert (held.taken, held.waiting, held.dropped) == (6, 3, 3)
        assert not handler.flush(timeout=0.0)
        gate.open()
        assert handler.flush()
    assert handler.counts.reasons == {"queue_full": 3}
    assert (handler.counts.assessed, whole(handler.counts)) == (3, True)
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the queue is full: answers are dropped, and counted"]


def test_workers_assess_at_the_same_time() -> None:
    gate = Gate()
    samples = Reply(texts=("Paris",), gate=gate)
    with ChatServer(split("Lyon", lambda _request: samples)) as server:
        model = chat_openai(server)
        with SNNECallbackHandler(guard_on(model), workers=2) as handler:
            for _ in range(3):
                model.invoke("x", {"callbacks": [handler]})
            server.wait_until(requests=5)
            assert (server.answering, handler.counts.waiting) == (2, 3)
            gate.open()
    assert handler.counts.assessed == 3


@pytest.mark.parametrize("drain", [True, False])
def test_closing_drops_what_is_left(drain: bool) -> None:
    gate = Gate()
    samples = Reply(texts=("Paris",), gate=gate)
    with ChatServer(split("Lyon", lambda _request: samples)) as server:
        model = chat_openai(server)
        handler = SNNECallbackHandler(guard_on(model))
        for _ in range(3):
            model.invoke("x", {"callbacks": [handler]})
        server.wait_until(requests=4)
        assert not handler.close(drain=drain, timeout=0.01)
        assert handler.counts.reasons == {"closed": 2}
        model.invoke("x", {"callbacks": [handler]})
        gate.open()
        assert handler.flush()
    counts = handler.counts
    assert (counts.assessed, counts.dropped, counts.skipped) == (1, 2, 1)
    assert counts.reasons == {"closed": 3}


def test_a_run_that_ends_after_the_closing_is_dropped(server: ChatServer) -> None:
    model = chat_openai(server)
    handler = SNNECallbackHandler(guard_on(model))
    stream = model.stream("x", {"callbacks": [handler]})
    next(stream)
    assert handler.close()
    assert "".join(chunk.text for chunk in stream) in "Lyon"
    assert (handler.counts.dropped, handler.counts.reasons) == (1, {"closed": 1})


async def test_in_a_running_loop_everything_works(server: ChatServer) -> None:
    model, witness = chat_openai(server), Witness()
    guard = guard_on(model, observers=[witness])
    async with SNNECallbackHandler(guard) as handler:
        config: Any = {"callbacks": [handler]}
        model.invoke("x", config)  # as in a notebook's cell
        await model.ainvoke("x", config)
        assert await handler.aflush()
        assert handler.counts.assessed == 2
    assert handler.counts.skipped == 0
    await model.ainvoke("x", config)
    assert handler.counts.reasons == {"closed": 1}
    assert await handler.aclose(drain=False)


def test_one_handler_serves_many_threads_and_loops(server: ChatServer) -> None:
    model = FakeListChatModel(responses=["Lyon"])
    handler = SNNECallbackHandler(
        guard_on(chat_openai(server)), max_queue=1000, workers=4
    )
    config: Any = {"callbacks": [handler]}

    def some(number: int) -> None:
        if number % 2:
            asyncio.run(many())
        else:
            for _ in range(5):
                model.invoke("x", config)

    async def many() -> None:
        await asyncio.gather(*(model.ainvoke("x", config) for _ in range(5)))

    with handler, ThreadPoolExecutor(8) as pool:
        list(pool.map(some, range(8)))
    counts = handler.counts
    assert (counts.seen, counts.assessed, counts.failed) == (40, 40, 0)
    assert whole(counts)


def test_samples_that_fail_are_named_and_nothing_else_happens() -> None:
    witness = Witness()
    down = error(400, "no capacity")
    with ChatServer(split("Lyon", lambda _request: down)) as server:
        model = chat_openai(server)
        with SNNECallbackHandler(guard_on(model, observers=[witness])) as handler:
            assert model.invoke("x", {"callbacks": [handler]}).text == "Lyon"
    assert "samples_failed" in witness.last.reasons
    assert (handler.counts.assessed, handler.counts.failed) == (1, 0)


@pytest.mark.parametrize("where", ["rule", "assessing"])
def test_a_failure_is_counted_by_its_type_and_its_text_is_nowhere(
    where: str, server: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: object) -> Any:
        raise LookupError(ASKED)

    caplog.set_level(logging.DEBUG, logger="snne_guard_integrations")
    model = chat_openai(server)
    rule = fail if where == "rule" else None
    uncertain = fail if where == "assessing" else "flag"
    guard = guard_on(model, on_uncertain=uncertain)
    with SNNECallbackHandler(guard, take_when=rule) as handler:
        for _ in range(2):
            answer = model.invoke(ASKED, {"callbacks": [handler]})
            assert answer.text == "Lyon"
    assert handler.counts.reasons == {"LookupError": 2}
    assert (handler.counts.failed, whole(handler.counts)) == (2, True)
    ours = [r for r in caplog.records if r.name.startswith("snne_guard_integrations")]
    assert len(ours) == 2
    assert ASKED not in caplog.text


def test_hooks_that_are_called_in_other_ways_break_nothing(server: ChatServer) -> None:
    handler = SNNECallbackHandler(guard_on(chat_openai(server)))
    handler.on_chat_model_start({}, [], run_id=uuid4())  # no messages at all
    handler.on_llm_end(None, run_id=uuid4())  # type: ignore[arg-type]  # of another run
    handler.on_llm_error(ValueError("x"), run_id=uuid4())
    assert handler.counts.reasons == {"IndexError": 1}
    assert whole(handler.counts)


@pytest.mark.parametrize("kind", ["hangs", "raises"])
def test_an_observer_that_misbehaves_costs_the_run_nothing(
    kind: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    if kind == "hangs":
        monkeypatch.setattr(observe, "_FLUSH_SECONDS", 0.1)

    class Observer:
        def on_assessment(self, _assessment: Assessment) -> None:
            if kind == "raises":
                raise ValueError(ASKED)
            over.wait()

    model = chat_openai(server)
    guard = guard_on(model, observers=[Observer()])
    with SNNECallbackHandler(guard) as handler:
        assert model.invoke("x", {"callbacks": [handler]}).text == "Lyon"
    over.set()
    assert handler.counts.assessed == 1
    assert guard.observer_failures == 1


def test_where_no_thread_can_start_the_run_goes_on(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    model = FakeListChatModel(responses=["Lyon"])
    handler = SNNECallbackHandler(guard_on(chat_openai(server)))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert model.invoke("x", {"callbacks": [handler]}).text == "Lyon"
    assert handler.counts.reasons == {"RuntimeError": 1}
    assert (handler.counts.failed, handler.counts.waiting) == (1, 0)
    model.invoke("x", {"callbacks": [handler]})
    assert handler.close()
    assert handler.counts.assessed == 1


def test_one_thread_is_enough_where_no_second_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    samples = Reply(texts=("Paris",), gate=gate)
    with ChatServer(split("Lyon", lambda _request: samples)) as server:
        model = FakeListChatModel(responses=["Lyon"])
        handler = SNNECallbackHandler(guard_on(chat_openai(server)), workers=2)
        model.invoke("x", {"callbacks": [handler]})
        server.wait_until(requests=1)
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if thread.name == "snne-guard-shadow":
                msg = "can't start new thread"
                raise RuntimeError(msg)
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)
        model.invoke("x", {"callbacks": [handler]})
        assert handler.counts.waiting == 2
        gate.open()
        assert handler.close()
    assert handler.counts.assessed == 2


async def test_a_thread_that_has_nothing_to_do_ends(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_backlog, "IDLE_SECONDS", 0.01)
    model = chat_openai(server)
    handler = SNNECallbackHandler(guard_on(model))

    def running() -> bool:
        return any(t.name == "snne-guard-shadow" for t in threading.enumerate())

    for _ in range(2):
        await model.ainvoke("x", {"callbacks": [handler]})
        assert await handler.aflush()
        await until(lambda: not running())
    assert handler.counts.assessed == 2


def test_runs_that_never_end_do_not_pile_up(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_backlog, "MAX_OPEN", 2)
    handler = SNNECallbackHandler(guard_on(chat_openai(server)))
    for _ in range(5):
        handler.on_chat_model_start({}, [[HumanMessage("x")]], run_id=uuid4())
    counts = handler.counts
    assert (counts.seen, counts.dropped) == (5, 3)
    assert counts.reasons == {"never_ended": 3}


def test_copies_are_the_handler_itself(server: ChatServer) -> None:
    model = chat_openai(server)
    handler = SNNECallbackHandler(guard_on(model))
    assert copy.copy(handler) is copy.deepcopy([handler])[0] is handler


def test_in_another_process_a_handler_begins_anew() -> None:
    model = FakeListChatModel(responses=["Paris"])
    handler = SNNECallbackHandler(
        SNNEGuard(model, n=3), sample_rate=0.5, max_queue=7, workers=2, exit_timeout=1
    )
    handler.on_llm_start({}, ["x"], run_id=uuid4())
    other = pickle.loads(pickle.dumps(handler))  # noqa: S301 - our own bytes
    assert (other.counts, other.sample_rate) == (ShadowCounts(), 0.5)
    assert (other.guard.n, other._options) == (3, handler._options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sample_rate": 1.5}, r"sample_rate must be in \[0, 1\], or None; got 1.5"),
        ({"max_queue": 0}, "max_queue must be a whole number of at least 1; got 0"),
        ({"workers": 0}, "workers must be a whole number of at least 1; got 0"),
        ({"exit_timeout": -1}, "exit_timeout must be 0 seconds or more; got -1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, said: str) -> None:
    guard = SNNEGuard(FakeListChatModel(responses=["Paris"]))
    with pytest.raises(ConfigurationError, match=said):
        SNNECallbackHandler(guard, **options)


def test_a_model_is_no_guard() -> None:
    model: Any = FakeListChatModel(responses=["Paris"])
    with pytest.raises(ConfigurationError, match=r"needs a guard .* got FakeListChat"):
        SNNECallbackHandler(model)


@pytest.mark.parametrize(("patience", "assessed"), [(30.0, 2), (0.0, 0)])
def test_leaving_waits_as_long_as_it_was_told(
    patience: float, assessed: int, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    samples = Reply(texts=("Paris",), gate=gate)
    with ChatServer(split("Lyon", lambda _request: samples)) as server:
        model = FakeListChatModel(responses=["Lyon"])
        handler = SNNECallbackHandler(
            guard_on(chat_openai(server)), exit_timeout=patience
        )
        for _ in range(2):
            model.invoke("x", {"callbacks": [handler]})
        server.wait_until(requests=1)
        if assessed:
            gate.open()
        handler._backlog.leave()
        assert handler.counts.assessed == assessed
        if not assessed:
            gate.open()
        assert handler.flush()
    said = [record.getMessage() for record in caplog.records]
    lost = "the process ends with 2 answers not assessed"
    assert said == ([] if assessed else [lost])


def test_only_handlers_that_live_leave_and_begin_anew() -> None:
    handler = SNNECallbackHandler(SNNEGuard(FakeListChatModel(responses=["Paris"])))
    assert handler._backlog in _backlog._LIVE
    backlog = handler._backlog
    handler.on_llm_start({}, ["x"], run_id=uuid4())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_backlog, "_LIVE", {backlog})
        _backlog._renew()  # as in a forked process
        assert (handler.counts, backlog.closed) == (ShadowCounts(), False)
        _backlog._leave()  # as at the end of one
    assert backlog.closed


def test_a_budget_bounds_what_the_shadow_spends(server: ChatServer) -> None:
    model, witness = chat_openai(server), Witness()
    guard = guard_on(model, observers=[witness], budget=Budget(tokens_per_minute=10))
    with SNNECallbackHandler(guard) as handler:
        for _ in range(6):
            model.invoke("x", {"callbacks": [handler]})
    spent = [found.cost.prompt_tokens for found in witness.assessments]
    spent += [found.cost.completion_tokens for found in witness.assessments]
    assert 0 < sum(spent) <= 10
    assert "over_budget" in witness.last.reasons


def test_the_switch_that_disables_guards_disables_this_one(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    model, witness = chat_openai(server), Witness()
    with SNNECallbackHandler(guard_on(model, observers=[witness])) as handler:
        model.invoke("x", {"callbacks": [handler]})
    assert "disabled" in witness.last.reasons
    assert len(server.requests) == 1
