"""Runs, usage, tags: what callback handlers and tracers are told of a guarded call."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import (
    BaseCallbackHandler,
    BaseCallbackManager,
    UsageMetadataCallbackHandler,
    get_usage_metadata_callback,
)
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.schemas import Run

from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.chat_server import (
    Billed,
    ChatServer,
    Reply,
    Usage,
    chat_openai,
    cycle,
    ignoring_n,
    rejecting_n,
)
from tests.support.guarding import WAYS, WHOLE, ask, record


class Tree(BaseTracer):
    """Keeps the run trees of what it traces."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def counted(handler: Any) -> Billed:
    usages = list(handler.usage_metadata.values())
    return Billed(
        prompt_tokens=sum(usage["input_tokens"] for usage in usages),
        completion_tokens=sum(usage["output_tokens"] for usage in usages),
    )


def truth(server: ChatServer) -> Billed:
    billed = server.billed
    return Billed(
        prompt_tokens=billed.prompt_tokens, completion_tokens=billed.completion_tokens
    )


SCRIPTS = {
    "n": cycle(["Paris", "Lyon in France"]),
    "ignored n": ignoring_n(["Paris", "Lyon in France"]),
    "rejected n": rejecting_n(cycle(["Paris", "Lyon in France"])),
}


@pytest.mark.parametrize("policy", ["flag", "refuse"])
@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("provider", SCRIPTS)
@pytest.mark.parametrize("way", WAYS)
def test_usage_is_counted_once_and_equals_what_the_server_counted(
    way: str, provider: str, chat_model: bool, policy: Any
) -> None:
    handler = UsageMetadataCallbackHandler()
    with ChatServer(SCRIPTS[provider]) as server:
        model = chat_openai(server, stream_usage=True)
        guard = SNNEGuard(model, threshold=0.0, on_uncertain=policy)
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Which city is it?", way, {"callbacks": [handler]})
        assert counted(handler) == truth(server)
        cost = record(message)["cost"]
        assert cost["prompt_tokens"] == server.billed.prompt_tokens
        assert cost["completion_tokens"] == server.billed.completion_tokens
        assert cost["calls"] == server.billed.requests
        assert cost["attempts"] == len(server.requests)
        assert message.usage_metadata is not None
        if chat_model:
            used = message.usage_metadata
            assert used["input_tokens"] == server.billed.prompt_tokens
            assert used["output_tokens"] == server.billed.completion_tokens
        else:
            assert message.usage_metadata["input_tokens"] == 4


@pytest.mark.parametrize("way", WHOLE)
def test_a_counter_opened_with_a_with_statement_counts_everything_too(way: str) -> None:
    with ChatServer(SCRIPTS["n"]) as server, get_usage_metadata_callback() as handler:
        ask(SNNEGuard(chat_openai(server)), "x", way)
        ask(GuardedChatModel(SNNEGuard(chat_openai(server))), "x", way)
        assert counted(handler) == truth(server)


@pytest.mark.parametrize("policy", ["flag", "refuse"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_samples_are_tagged_runs_under_the_guards_own(way: str, policy: Any) -> None:
    tree = Tree()
    config = {"callbacks": [tree], "tags": ["mine"], "metadata": {"user": "u1"}}
    with ChatServer(rejecting_n(cycle(["Paris"]))) as server:
        guard = SNNEGuard(
            chat_openai(server), n=3, threshold=0.0, on_uncertain=policy
        ).with_config(run_name="guarded")
        ask(guard, "x", way, config)  # type: ignore[arg-type]  # a RunnableConfig
    (root,) = tree.roots
    assert (root.name, root.run_type) == ("guarded", "chain")
    runs = [run for run in root.child_runs if run.run_type == "llm"]
    samples = [run for run in runs if "snne_guard:sample" in (run.tags or [])]
    assert len(runs) - len(samples) == 1
    (answer,) = [run for run in runs if "snne_guard:answer" in (run.tags or [])]
    assert answer not in samples
    assert [run.error is None for run in samples].count(True) == 2
    for run in runs:
        assert "mine" in (run.tags or [])
        assert run.metadata["user"] == "u1"
        assert run.metadata["ls_model_name"] == "test-model"
    assert all("nostream" in (run.tags or []) for run in samples)


@pytest.mark.parametrize("way", WHOLE)
def test_under_a_chat_model_all_runs_nest_and_only_the_outer_one_counts(
    way: str,
) -> None:
    tree = Tree()
    with ChatServer(cycle(["Paris"])) as server:
        model = GuardedChatModel(SNNEGuard(chat_openai(server), threshold=0.4))
        ask(model, "x", way, {"callbacks": [tree]})
    (root,) = tree.roots
    assert root.run_type == "llm"
    assert [run.run_type for run in root.child_runs] == ["llm", "llm"]
    for run in root.child_runs:
        assert run.outputs is not None
        for generation in run.outputs["generations"][0]:
            assert generation["message"]["kwargs"].get("usage_metadata") is None


class Injected(BaseCallbackHandler):
    """A tracer that an instrumentation puts into every manager without one."""

    run_inline = True

    def __init__(self) -> None:
        self.known: set[Any] = set()

    def on_chat_model_start(
        self, *_args: Any, run_id: Any, parent_run_id: Any = None, **_kwargs: Any
    ) -> None:
        assert parent_run_id is None or parent_run_id in self.known
        self.known.add(run_id)


@pytest.mark.parametrize("way", WHOLE)
def test_a_tracer_that_is_put_into_every_manager_knows_the_runs_that_it_is_told_of(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Injected] = []
    make = BaseCallbackManager.__init__

    def inject(manager: BaseCallbackManager, *args: Any, **kwargs: Any) -> None:
        make(manager, *args, **kwargs)
        if not any(isinstance(each, Injected) for each in manager.inheritable_handlers):
            made.append(Injected())
            manager.add_handler(made[-1])

    monkeypatch.setattr(BaseCallbackManager, "__init__", inject)
    with ChatServer(cycle(["Paris"])) as server:
        model = GuardedChatModel(SNNEGuard(chat_openai(server)))
        ask(model, "x", way)
    # The run and the two in it, and nothing of the requests behind them.
    assert [len(each.known) for each in made if each.known] == [3]


@pytest.mark.parametrize("way", WHOLE)
def test_a_server_that_counts_one_choice_only_is_a_lower_bound(way: str) -> None:
    reply = Reply(texts=["one two three"], usage=Usage(prompt=2, completion=3))
    with ChatServer([reply]) as server:
        found = record(ask(SNNEGuard(chat_openai(server)), "x", way))
    assert found["cost"]["completion_tokens"] == 6
    assert found["cost"]["lower_bound"] is True


@pytest.mark.parametrize("way", WHOLE)
def test_a_provider_that_counts_nothing_is_a_lower_bound(way: str) -> None:
    with ChatServer([Reply(texts=["one two"], usage=None)]) as server:
        found = record(ask(SNNEGuard(chat_openai(server), n=3), "x", way))
    assert found["cost"]["lower_bound"] is True
