"""The table of providers: which row a model is in, and what follows from it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from snne_guard import SNNEGuard
from snne_guard.sampling import Draw, SamplingPlan
from snne_guard.sampling.langchain_clients import (
    bedrock_clients,
    google_clients,
    lazy_clients,
    resource_clients,
    root_clients,
)
from snne_guard.sampling.langchain_effects import side_effects
from snne_guard.sampling.langchain_messages import cost_of, read_message
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_options import request_options
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import (
    LOGPROB_PATHS,
    PROVIDERS,
    SERVERS,
    UNKNOWN,
    provider_of,
)
from snne_guard.sampling.langchain_route import Route
from snne_guard.sampling.retry import is_bad_request, is_transient, rejects, retry_after
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.guarding import ask, is_sample, split

ROWS = (*PROVIDERS, *SERVERS, UNKNOWN)


class Own(FakeListChatModel):
    """A model of somebody's own, which says how it is to be drawn from."""

    snne_guard_provider: ClassVar[Provider] = Provider(name="own", n="replies.number")


class ChatOllama(FakeListChatModel):
    """Has the name of Ollama's class, and its fields."""

    temperature: float | None = 0.3
    seed: int | None = None


class HuggingFacePipeline:
    """Has the name of what runs in the process."""


class ChatHuggingFace(FakeListChatModel):
    """Has the name of the class that stands for two rows."""

    llm: Any = None


def own(kind: type[FakeListChatModel], **options: Any) -> BaseChatModel:
    return kind(responses=["x"], **options)


def test_each_row_has_a_name_of_its_own_and_is_found_by_its_class() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    for row in PROVIDERS:
        assert row.classes
        assert all(bool(row.logprobs) == bool(row.logprobs_at) for row in PROVIDERS)
    assert LOGPROB_PATHS == (
        ("logprobs", "content"),
        ("logprobs",),
        ("logprobs", "token_logprobs"),
    )


def test_what_is_in_no_row_gets_the_safe_path() -> None:
    row = provider_of(own(FakeListChatModel))
    assert row is UNKNOWN
    assert (row.n, dict(row.logprobs), row.tested) == (None, {}, False)


def test_a_class_may_say_itself_how_it_is_to_be_drawn_from() -> None:
    assert provider_of(own(Own)).name == "own"
    options = options_of(own(Own), {"replies": {"kept": 1}}, n=3)
    assert options == {"replies": {"kept": 1, "number": 3}}
    assert options_of(own(Own), {}, n=1) == {}
    assert Route.of(own(Own), SamplingPlan()).supports_batch


def test_a_class_may_stand_for_two_rows() -> None:
    local = provider_of(own(ChatHuggingFace, llm=HuggingFacePipeline()))
    remote = provider_of(own(ChatHuggingFace, llm=object()))
    assert [local.name, remote.name] == [
        "Hugging Face, local pipeline",
        "Hugging Face, endpoints",
    ]
    route = Route.of(own(ChatHuggingFace, llm=HuggingFacePipeline()), SamplingPlan())
    assert route.reasons() == ("temperature_unset",)


def options_of(
    model: BaseChatModel, kwargs: dict[str, Any], *, n: int = 1, **plan: Any
) -> dict[str, Any]:
    return request_options(
        Candidate(model=model),
        kwargs,
        Draw(index=2, n=n),
        plan=SamplingPlan(**plan),
        logprobs=False,
        temperature=plan.pop("temperature", 1.0) is not None,
    )


def test_options_that_take_the_place_of_all_fields_hold_what_is_set() -> None:
    given = {"options": {"temperature": 0.0, "seed": 5, "top_k": 3}}
    options = options_of(own(ChatOllama), given, sample_max_tokens=9)
    assert options == {
        "options": {"temperature": 1.0, "seed": 8, "top_k": 3, "num_predict": 9}
    }
    assert options_of(own(ChatOllama), {"options": None}) == {
        "options": {"temperature": 1.0}
    }
    assert given["options"]["seed"] == 5


def test_without_a_temperature_none_is_set_there_either() -> None:
    options = request_options(
        Candidate(model=own(ChatOllama)),
        {"options": {"temperature": 0.0}},
        Draw(index=0, n=1),
        plan=SamplingPlan(),
        logprobs=False,
        temperature=False,
    )
    assert options == {"options": {}}


def test_a_row_may_add_options_to_every_request_for_samples() -> None:
    class ChatLiteLLM(FakeListChatModel):
        """Has the name of LiteLLM's class."""

    options = options_of(own(ChatLiteLLM), {"stop": ["x"]})
    assert options == {"stop": ["x"], "max_retries": 0, "num_retries": 0}


def test_fallbacks_of_different_tongues_are_asked_for_no_log_probabilities() -> None:
    with ChatServer() as server:
        one = chat_openai(server)
        assert Route.of(one.with_fallbacks([one]), SamplingPlan()).supports_logprobs
        other = one.with_fallbacks([own(ChatOllama)])
        assert Route.of(other, SamplingPlan()).supports_logprobs
        assert not Route.of(other, SamplingPlan()).supports_batch
        none = one.with_fallbacks([own(Own)])
        assert not Route.of(none, SamplingPlan()).supports_logprobs


class Odd:
    """A token as the client of Ollama has it."""

    def __init__(self, token: str, logprob: float) -> None:
        self.token, self.logprob = token, logprob


@pytest.mark.parametrize(
    ("text", "logprobs", "read"),
    [
        ("a", {"content": [{"token": "a", "logprob": -0.5}]}, (-0.5,)),
        (
            "ab",
            [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": 0}],
            (-0.5, 0.0),
        ),
        ("a", [Odd("a", -0.5)], (-0.5,)),
        ("ab", {"tokens": ["a", "b"], "token_logprobs": [-1, -2.0]}, (-1.0, -2.0)),
        ("ab", {"tokens": ["a"], "token_logprobs": [-1, -2.0]}, None),
        ("ab", {"token_logprobs": [-1.0]}, (-1.0,)),
        ("a", {"tokens": ["a"], "token_logprobs": [None]}, None),
        ("a", {"tokens": ["a"], "token_logprobs": None}, None),
        ("a", {"content": None}, None),
        ("a", "oops", None),
        ("a", [], None),
        ("a", None, None),
    ],
)
def test_log_probabilities_are_read_where_any_row_says(
    text: str, logprobs: Any, read: tuple[float, ...] | None
) -> None:
    message = AIMessage(text, response_metadata={"logprobs": logprobs})
    assert read_message(message).token_logprobs == read


@pytest.mark.parametrize(("text", "bound"), [("Paris", True), ("", False)])
def test_a_reply_for_which_nothing_was_counted_costs_at_least_that(
    text: str, *, bound: bool
) -> None:
    usage = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
    message = AIMessage(text, usage_metadata=usage)
    assert cost_of(message, [read_message(message)]).lower_bound is bound


class Holder:
    """A model whose clients are of another make, or not there."""

    client: Any = None
    async_client: Any = None


def test_clients_of_another_make_are_left_as_they_are() -> None:
    for clients in (
        bedrock_clients,
        google_clients,
        lazy_clients,
        resource_clients,
        root_clients,
    ):
        assert clients(Holder()) == {}


class OldGoogleClient:
    """Answers with what it was asked, as langchain-google-genai's did before 4."""

    def generate_content(self, **options: Any) -> dict[str, Any]:
        return options


class OldAsyncGoogleClient:
    """Its twin."""

    async def generate_content(self, **options: Any) -> dict[str, Any]:
        return options


async def test_the_first_clients_of_google_are_asked_without_their_retries() -> None:
    holder = Holder()
    holder.client, holder.async_client = OldGoogleClient(), OldAsyncGoogleClient()
    found = google_clients(holder)
    asked = {"request": 1, "retry": None}
    assert found["client"].generate_content(request=1) == asked
    assert await found["async_client_running"].generate_content(request=1) == asked


class GoogleTool:
    """Tells like Google's first type what is in it, empty lists and all."""

    __module__ = "google.ai"

    def __init__(self, **held: Any) -> None:
        self.held = {"function_declarations": [], **held}

    @classmethod
    def to_dict(cls, tool: GoogleTool) -> dict[str, Any]:
        return tool.held


class NewGoogleTool:
    """Tells like Google's second type what is in it, and what is not."""

    __module__ = "google.genai.types"

    def __init__(self, **held: Any) -> None:
        self.held = {"function_declarations": None, "retrieval": None, **held}

    def model_dump(self) -> dict[str, Any]:
        return self.held


@pytest.mark.parametrize(
    ("held", "acts"),
    [
        ({"google_search": {}}, True),
        ({"code_execution": {}}, True),
        ({"function_declarations": [{"name": "f"}], "mcp_servers": []}, False),
    ],
)
def test_tools_in_a_type_of_the_providers_own_are_looked_into(
    held: dict[str, Any], *, acts: bool
) -> None:
    candidate = Candidate(model=own(FakeListChatModel))
    for tool in (GoogleTool(**held), NewGoogleTool(**held)):
        assert side_effects(candidate, {"tools": [tool]}) is acts
        assert side_effects(candidate, {"toolConfig": {"tools": [tool]}}) is acts
        assert side_effects(candidate, {"tools": [tool.held]}) is acts


@pytest.mark.parametrize(
    ("kind", "acts"),
    [
        ("bash_20250124", False),
        ("text_editor_20250728", False),
        ("computer_use_preview", False),
        ("memory_20250818", False),
        ("local_shell", False),
        ("web_search_20250305", True),
        ("web_fetch_20250910", True),
        ("code_interpreter", True),
        ("mcp", True),
        ("document_library", True),
    ],
)
def test_tools_with_a_type_run_at_the_provider_or_are_proposed(
    kind: str, *, acts: bool
) -> None:
    candidate = Candidate(model=own(FakeListChatModel))
    assert side_effects(candidate, {"tools": [{"type": kind}]}) is acts


class BotocoreError(Exception):
    """As botocore's: its response is a mapping."""

    def __init__(self, status: int | None) -> None:
        super().__init__("no")
        metadata: dict[str, Any] = {"HTTPHeaders": {"retry-after": "3"}}
        if status is not None:
            metadata["HTTPStatusCode"] = status
        self.response = {"ResponseMetadata": metadata}


def test_errors_of_other_clients_are_understood() -> None:
    assert is_transient(BotocoreError(429))
    assert not is_transient(BotocoreError(None))
    assert is_bad_request(BotocoreError(400))
    assert retry_after(BotocoreError(429)) == 3.0
    error = ValueError("Multiple candidates is not enabled for this model")
    error.__cause__ = BotocoreError(400)
    assert rejects(error, "n") is True
    assert retry_after(error) == 3.0
    other = ValueError("candidateCount must be 1 but the entered value was 3")
    other.__cause__ = BotocoreError(400)
    assert rejects(other, "n") is True
    assert not is_bad_request(ValueError("no"))


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_model_whose_profile_takes_no_temperature_is_sent_none(way: str) -> None:
    with ChatServer(split("Paris", ["Rome"])) as server:
        model = chat_openai(server, profile={"temperature": False})
        found = ask(SNNEGuard(model, n=3), "x", way).response_metadata["snne_guard"]
        assert [request.temperature for request in server.requests] == [None, None]
    assert found["n_used"] == 3
    assert "temperature_unset" in found["reasons"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_temperature_outside_the_range_is_moved_inside(way: str) -> None:
    with ChatServer(split("Paris", ["Rome"])) as server:
        guard = SNNEGuard(chat_openai(server, temperature=0), temperature=3.0, n=2)
        server.script = split("Paris", ["Rome"])
        found = ask(guard, "x", way).response_metadata["snne_guard"]
        temperatures = sorted(r.temperature or 0.0 for r in server.requests)
    assert temperatures == [0.0, 2.0]
    assert "temperature_capped" in found["reasons"]
    assert not any(map(is_sample, server.requests))
