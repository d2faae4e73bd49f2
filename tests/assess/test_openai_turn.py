"""Samples beside an answer that the caller draws, through ``OpenAIGuard.begin``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from snne_guard import (
    Assessment,
    AsyncOpenAIGuard,
    Budget,
    ConfigurationError,
    GuardTimeoutError,
    InputError,
    OpenAIGuard,
    SamplingError,
    UncertainAnswerError,
)
from tests.support.chat_server import (
    ChatServer,
    Reply,
    always,
    cycle,
    error,
    rejecting,
    response,
)
from tests.support.guarding import Witness, split
from tests.support.openai_clients import BOTH, async_client, client
from tests.support.patience import in_time

APART = ["Rome", "Lyon", "Bonn", "Oslo"]
REQUEST: dict[str, Any] = {
    "model": "test-model",
    "messages": [{"role": "user", "content": "Capital of France?"}],
}
both = pytest.mark.parametrize("way", BOTH)


class Turns:
    """Both twins behind one plain call; what is drawn is streamed if so told."""

    def __init__(self, server: ChatServer, way: str, settings: dict[str, Any]) -> None:
        self.way, self.runner = way, asyncio.Runner()
        self.client: Any
        self.guard: Any
        if way == "threads":
            self.client = client(server)
            self.guard = OpenAIGuard(self.client, **settings)
        else:
            self.client = async_client(server)
            self.guard = AsyncOpenAIGuard(self.client, **settings)

    def close(self) -> None:
        if self.way == "tasks":
            self.runner.run(self.client.close())
        else:
            self.client.close()
        self.runner.close()

    def plainly(self, function: Callable[..., Any]) -> Any:
        """Call a function of the guard, awaited where it must be."""
        if self.way == "threads":
            return function()
        return self.runner.run(function())

    def __call__(self, *, send: Any = None, api: Any = None, **request: Any) -> Any:
        request = request or REQUEST
        create = self.client.chat.completions.create
        if api == "responses":
            create = self.client.responses.create
        send = send or partial(create, **request)
        if self.way == "threads":
            with self.guard.begin(api=api, **request) as turn:
                self.turn = turn
                return turn.finish(turn.ask(send))
        return self.runner.run(self._run(send, api, request))

    async def _run(self, send: Any, api: Any, request: dict[str, Any]) -> Any:
        async with self.guard.begin(api=api, **request) as turn:
            self.turn = turn
            return await turn.finish(await turn.ask(send))


@pytest.fixture
def turns() -> Iterator[Callable[..., Turns]]:
    with ExitStack() as stack:

        def make(server: ChatServer, way: str, **settings: Any) -> Turns:
            made = Turns(server, way, settings)
            stack.callback(made.close)
            return made

        yield make


@both
def test_an_answer_of_the_caller_s_is_scored_with_samples_beside_it(
    way: str, turns: Callable[..., Turns]
) -> None:
    with ChatServer(split("Paris", APART)) as server:
        ask = turns(server, way, threshold=0.4)
        found: Assessment = ask()
        assert ask.turn.added == {"logprobs": True}
        assert not ask.turn.holds
    assert (found.decision, found.n_used, found.uncertainty) == ("flag", 5, 1.0)
    assert found.raw.choices[0].message.content == "Paris"
    assert found.question == "Capital of France?"
    assert found.cost.calls == server.billed.requests == 2
    assert sorted(request.n for request in server.requests) == [1, 4]
    assert all(request.logprobs for request in server.requests)


@both
def test_every_model_is_learnt_about_alone_under_one_budget(
    way: str, turns: Callable[..., Turns]
) -> None:
    def script(request: Any) -> Reply:
        if request.body["model"] == "shy" and request.logprobs:
            return rejecting("logprobs", always("never"))(request)
        return Reply(texts=("Paris",))

    with ChatServer(script) as server:
        ask = turns(server, way, budget=Budget(tokens_per_call=10_000))
        for _ in range(2):
            assert ask(**{**REQUEST, "model": "shy"}).method == "snne"
            assert ask().method == "wsnne"
        assert ask.turn.added
        guard = ask.guard
        shy, other = (guard._core.at(model=m, api=None) for m in ("shy", "test-model"))
        assert shy is guard._core.at(model="shy", api="chat")
        assert shy.assessor.memory is not other.assessor.memory
        assert shy.assessor.ledger is other.assessor.ledger is not None
        assert shy.assessor.circuit is other.assessor.circuit
        # Asked for once and never again: five requests of that model, not six.
    asked = [r for r in server.requests if r.body["model"] == "shy" and r.logprobs]
    assert 1 <= len(asked) <= 2


@both
def test_another_client_is_asked_under_the_same_limits(
    way: str, turns: Callable[..., Turns]
) -> None:
    with ChatServer(always("Paris")) as server, ChatServer(always("Rome")) as elsewhere:
        ask = turns(server, way, max_concurrency=2)
        ask()
        near = ask.guard.with_client(ask.client.with_options(timeout=7))
        assert near._core.assessor is ask.guard._core.assessor
        assert near._core.memories is ask.guard._core.memories
        far = ask.guard.with_client(
            ask.client.with_options(base_url=elsewhere.url, timeout=7)
        )
        assert far._core.memories is not ask.guard._core.memories
        assert far._core.assessor.limiter is ask.guard._core.assessor.limiter
        ask.guard = far
        ask(send=partial(ask.client.chat.completions.create, **REQUEST))
        assert len(elsewhere.requests) == 1
        with pytest.raises(ConfigurationError, match="client must be"):
            ask.guard.with_client(object())


@both
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"n": 3}, "several_answers"),
        ({"extra_body": {"n": 3}}, "several_answers"),
        ({"extra_body": {"n": "3"}}, None),
        ({"n": openai.NOT_GIVEN}, None),
        ({"web_search_options": {}}, "side_effects"),
        ({"n": 3, "web_search_options": {}}, "side_effects"),
    ],
)
def test_some_requests_get_no_samples(
    way: str,
    turns: Callable[..., Turns],
    options: dict[str, Any],
    reason: str | None,
) -> None:
    with ChatServer(always("Paris")) as server:
        ask = turns(server, way, threshold=0.4)
        send = partial(ask.client.chat.completions.create, **REQUEST)
        found = ask(send=send, **REQUEST, **options)
    assert (reason in found.reasons) is bool(reason)
    assert found.decision == ("flag" if reason else "accept")
    assert len(server.requests) == (1 if reason else 2)


@both
def test_the_responses_api_is_asked_by_the_same_guard(
    way: str, turns: Callable[..., Turns]
) -> None:
    with ChatServer([response("Paris", logprobs=[-0.1])]) as server:
        ask = turns(server, way, threshold=0.4, n=3)
        assert ask(api="responses", model="m", input="x").decision == "accept"
        assert server.requests[0].body["include"] == ["message.output_text.logprobs"]
        # A stored prompt may bring tools of its own, and needs no messages.
        found = ask(api="responses", model="m", prompt={"id": "p"})
        assert found.reasons == ("side_effects",)
        assert ask(
            api="responses", model="m", prompt={"id": "p"}, input=openai.NOT_GIVEN
        ).reasons == ("side_effects",)


@both
def test_bad_requests_are_refused(way: str, turns: Callable[..., Turns]) -> None:
    with ChatServer(always("Paris")) as server:
        ask = turns(server, way)
        with pytest.raises(ConfigurationError, match="model must be"):
            ask.guard.begin(messages="x")
        with pytest.raises(ConfigurationError, match="model must be"):
            ask.plainly(ask.guard.preflight)
        with pytest.raises(ConfigurationError, match="api must be one of"):
            ask.guard.begin(model="m", messages="x", api="assistants")
        with pytest.raises(InputError, match="messages must be"):
            ask.guard.begin(model="m")


@both
def test_no_answer_in_the_reply_is_an_error(
    way: str, turns: Callable[..., Turns]
) -> None:
    witness = Witness()
    with ChatServer([Reply(choices=0)]) as server:
        ask = turns(server, way, observers=[witness])
        with pytest.raises(SamplingError, match="no reply in it"):
            ask()
    assert witness.last.reasons == ("answer_failed",)


@both
def test_an_answer_that_is_withheld_raises_without_its_text(
    way: str, turns: Callable[..., Turns]
) -> None:
    with ChatServer(split("Paris", APART)) as server:
        ask = turns(server, way, threshold=0.4, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError) as caught:
            ask()
        assert ask.turn.holds
    assert "Paris" not in str(caught.value)


@both
def test_what_a_guard_may_not_judge_holds_nothing(
    way: str, turns: Callable[..., Turns]
) -> None:
    with ChatServer(split("Paris", APART)) as server:
        ask = turns(
            server,
            way,
            threshold=0.4,
            on_uncertain="refuse",
            sample_when=lambda _messages: False,
        )
        assert ask().reasons == ("skipped_by_rule",)
        assert not ask.turn.holds


@both
def test_a_time_limit_ends_the_caller_s_own_request(
    way: str, turns: Callable[..., Turns]
) -> None:
    def check(limit: float) -> None:
        witness = Witness()
        with ChatServer(split(lambda _r: Reply(stall=True), ["Paris"])) as server:
            ask = turns(server, way, timeout=limit, observers=[witness])
            with pytest.raises(GuardTimeoutError):
                ask()
        assert witness.last.reasons == ("answer_failed",)
        assert witness.last.cost.lower_bound

    in_time(check, seconds=0.2)


@both
def test_somebody_else_can_be_asked_where_the_answer_failed(
    way: str, turns: Callable[..., Turns]
) -> None:
    witness = Witness()
    with ChatServer([error(500)]) as server:
        ask = turns(server, way, threshold=0.4, observers=[witness])

        def lost() -> Assessment:
            with ask.guard.begin(**REQUEST) as turn:
                try:
                    turn.ask(partial(ask.client.chat.completions.create, **REQUEST))
                except openai.OpenAIError as failed:
                    found: Assessment = turn.hand_over(failed)
                return found

        async def lost_too() -> Assessment:
            async with ask.guard.begin(**REQUEST) as turn:
                try:
                    await turn.ask(
                        partial(ask.client.chat.completions.create, **REQUEST)
                    )
                except openai.OpenAIError as failed:
                    found: Assessment = await turn.hand_over(failed)
                return found

        found = lost() if way == "threads" else ask.runner.run(lost_too())
    assert (found.decision, found.reasons) == ("fallback", ("answer_failed",))
    assert witness.assessments == [found]


# --- streams --------------------------------------------------------------------------


def whole(chunks: list[ChatCompletionChunk]) -> dict[str, Any]:
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks]
    return {"choices": [{"index": 0, "message": {"content": "".join(texts)}}]}


def streamed(ask: Turns) -> Assessment:
    """Draw a streamed answer and return its assessment."""
    send = partial(ask.client.chat.completions.create, **REQUEST, stream=True)

    def threads() -> Assessment:
        with ask.guard.begin(**REQUEST) as turn, turn.ask(send) as stream:
            found: Assessment = turn.finish(
                whole(list(iter(lambda: turn.next(stream), None)))
            )
            return found

    async def tasks() -> Assessment:
        async with ask.guard.begin(**REQUEST) as turn, await turn.ask(send) as stream:
            parts, chunks = aiter(stream), []
            while (chunk := await turn.next(parts)) is not None:
                chunks.append(chunk)
            found: Assessment = await turn.finish(whole(chunks))
            return found

    return threads() if ask.way == "threads" else ask.runner.run(tasks())


@both
def test_a_streamed_answer_is_scored_at_its_end(
    way: str, turns: Callable[..., Turns]
) -> None:
    with ChatServer(split("It is Paris", APART)) as server:
        found = streamed(turns(server, way, threshold=0.4))
    assert (found.decision, found.n_used) == ("flag", 5)
    assert found.answer is not None
    assert found.answer.text == "It is Paris"


@both
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(texts=("a b c d",), drop=True), openai.APIError),
        (Reply(texts=("a b c d",), chunk_delay=60.0), GuardTimeoutError),
    ],
    ids=["dropped", "slow"],
)
def test_a_stream_that_breaks_off_is_reported(
    way: str,
    turns: Callable[..., Turns],
    reply: Reply,
    expected: type[Exception],
) -> None:
    def check(limit: float) -> None:
        witness = Witness()
        timeout = limit if reply.chunk_delay else None
        with ChatServer(split(lambda _request: reply, cycle(["Paris"]))) as server:
            ask = turns(server, way, observers=[witness], timeout=timeout)
            with pytest.raises(expected):
                streamed(ask)
        assert witness.last.reasons == ("answer_failed",)
        assert witness.last.cost.lower_bound

    in_time(check, seconds=0.3)
