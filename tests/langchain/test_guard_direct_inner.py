"""Models that ask another model, in the name of the run that they are given."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.globals import set_debug
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from snne_guard import SNNEGuard
from tests.support.chat_server import ChatServer, chat_openai, cycle
from tests.support.guarding import WHOLE, ask

BOTH = pytest.mark.parametrize("way", WHOLE)
WITHHELD = "Marseille"


class Relay(BaseChatModel):
    """Has another model answer, and keeps the runs that it was given."""

    inner: Any
    given: str
    runs: list[Any]

    @property
    def _llm_type(self) -> str:
        return "relay"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        assert run_manager is not None
        self.runs.append(run_manager)
        config = {"callbacks": getattr(run_manager, self.given)}
        message = self.inner.invoke(messages, config, stop=stop, **kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])


def relay(given: str = "inheritable_handlers") -> Relay:
    replies = [f"{WITHHELD} {word}" for word in ("one", "two", "three", "four")]
    return Relay(inner=FakeListChatModel(responses=replies), given=given, runs=[])


@BOTH
@pytest.mark.parametrize("given", ["handlers", "inheritable_handlers"])
def test_what_is_withheld_is_not_printed_by_a_model_behind_the_model(
    way: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    guard = SNNEGuard(relay(given), n=3, threshold=0.0, on_uncertain="refuse")
    set_debug(value=True)
    try:
        assert WITHHELD not in ask(guard, "x", way).text
    finally:
        set_debug(value=False)
    printed = capsys.readouterr().out
    assert "[llm/start]" in printed
    assert WITHHELD not in printed


@BOTH
@pytest.mark.parametrize("policy", ["flag", "refuse"])
def test_a_run_says_in_which_call_it_is_and_so_do_those_in_it(
    way: str, policy: Any
) -> None:
    model = relay()
    config: Any = {"tags": ["call"], "metadata": {"tenant": 7}}
    guard = SNNEGuard(model, n=3, threshold=0.9, on_uncertain=policy)
    ask(guard, "x", way, config)
    assert len(model.runs) == 3
    assert len({run.run_id for run in model.runs}) == 3
    (parent,) = {run.parent_run_id for run in model.runs}
    assert parent is not None
    for run in model.runs:
        assert run.inheritable_tags[0] == run.tags[0] == "call"
        assert run.inheritable_metadata["tenant"] == run.metadata["tenant"] == 7


@BOTH
def test_what_a_model_notes_in_its_run_is_in_no_other(way: str) -> None:
    model = relay()
    ask(SNNEGuard(model, n=3), "x", way)
    first, *others = model.runs
    first.metadata["noted"] = first.inheritable_metadata["noted"] = True
    first.tags.append("noted")
    first.inheritable_tags.append("noted")
    first.inheritable_handlers.append(None)
    for run in others:
        assert "noted" not in {*run.metadata, *run.inheritable_metadata}
        assert "noted" not in {*run.tags, *run.inheritable_tags}
        assert None not in {*run.handlers, *run.inheritable_handlers}


@BOTH
def test_debugging_goes_quietly_where_chunks_of_a_withheld_answer_arrive(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    set_debug(value=True)
    try:
        with ChatServer(cycle(["Paris", "Lyon", "Nice"])) as server:
            model = chat_openai(server, streaming=True)
            guard = SNNEGuard(model, n=3, threshold=0.0, on_uncertain="refuse")
            ask(guard, "x", way)
            assert any(request.body.get("stream") for request in server.requests)
    finally:
        set_debug(value=False)
    told = [r.getMessage() for r in caplog.records if r.name.startswith("langchain")]
    assert told == []
