"""What only one provider does, and what each calls by a name of its own."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import SNNEGuard
from tests.providers.cases import CASES, Case, asked
from tests.support.chat_server import Reply, Request, Usage, always, error
from tests.support.guarding import WHOLE, Witness, ask, is_sample, record, split

ENDS = {
    "OpenAI": ("length", "content_filter"),
    "Azure OpenAI": ("length", None),  # see below
    "Anthropic": ("max_tokens", "refusal"),
    "Google Gemini": ("MAX_TOKENS", "SAFETY"),
    "Amazon Bedrock, Converse": ("max_tokens", "guardrail_intervened"),
    "Mistral": ("model_length", None),
    "Ollama": ("length", None),
}
"""How the providers call a reply that was cut off, and one that was refused."""


@asked(lambda case: case.row in ENDS)
def test_samples_cut_off_or_refused_are_told_in_the_words_of_each(
    case: Case, way: str
) -> None:
    for finish, reason in zip(ENDS[case.row], ("truncated", "refused"), strict=True):
        if finish is None:
            continue
        bad = always("Rom", finish_reasons=(finish,))
        with case.server(split("Paris", bad)) as server:
            found = record(ask(SNNEGuard(case.chat(server), n=3), "x", way))
        assert f"{reason}_samples" in found["reasons"]
        assert found["n_used"] == 1


ODD: dict[str, dict[str, Any]] = {
    "OpenAI": {"extra_body": {"temperature": 0.0, "n": 3, "seed": 5}},
    "Anthropic": {"temperature": 0.0},
    "Google Gemini": {
        "generation_config": {"temperature": 0.0, "candidate_count": 2, "top_k": 3}
    },
    "Amazon Bedrock, Converse": {
        "inferenceConfig": {"temperature": 0.0, "maxTokens": 500}
    },
    "Mistral": {"temperature": 0.0, "n": 2, "random_seed": 5},
    "Groq": {"temperature": 0.0, "seed": 5},
    "Ollama": {"options": {"temperature": 0.0, "seed": 5, "num_predict": 500}},
    "Fireworks": {"temperature": 0.0, "n": 2},
}
"""Where users may put what the guard sets for samples."""


@asked(lambda case: case.row in ODD)
def test_options_in_odd_places_do_not_reach_the_samples(case: Case, way: str) -> None:
    check_odd(case, way, ODD[case.row])


SNAKE = {"temperature": 0.0, "max_tokens": 500, "top_p": 0.9}
CAMEL = {"temperature": 0.0, "maxTokens": 500}


@pytest.mark.parametrize(
    "options",
    [
        {"inference_config": SNAKE},
        {"inferenceConfig": SNAKE},
        # The class takes the last of them.
        {"inferenceConfig": {"temperature": 0.7}, "inference_config": CAMEL},
        {"inference_config": {"temperature": 0.7}, "inferenceConfig": CAMEL},
    ],
)
@asked(lambda case: case.row == "Amazon Bedrock, Converse")
def test_converse_takes_its_options_with_underscores_too(
    case: Case, way: str, options: dict[str, Any]
) -> None:
    check_odd(case, way, options)


def check_odd(case: Case, way: str, options: dict[str, Any]) -> None:
    """Check that the answer has the user's options, and the samples the guard's."""
    with case.server(split("Paris", ["Paris"])) as server:
        model = case.chat(server).bind(**options)
        guard = SNNEGuard(model, n=3, sample_max_tokens=9)
        found = record(ask(guard, "x", way))
        answer, *samples = sorted(server.asked, key=is_sample)
    assert found["n_used"] == 3
    assert answer.temperature == 0.0
    assert [r.temperature for r in samples] == [1.0] * len(samples)
    assert [r.n for r in samples] == ([2] if case.told.n else [1, 1])
    seeds = {r.body.get("seed") for r in samples}
    assert seeds in ({None}, {6}, {6, 7})
    limits = {
        r.body.get("max_completion_tokens", r.body.get("max_tokens")) for r in samples
    }
    assert limits == {9}


@pytest.mark.parametrize("way", WHOLE)
def test_a_filtered_reply_fails_the_whole_request_at_azure(way: str) -> None:
    bad = always("Rom", finish_reasons=("stop", "content_filter"))
    case = CASES["Azure OpenAI"]
    with case.server(split("Paris", bad)) as server:
        found = record(ask(SNNEGuard(case.chat(server), n=3), "x", way))
        assert len(server.requests) == 2
    assert "samples_failed" in found["reasons"]
    assert found["cost"]["lower_bound"] is True  # it was billed, and nobody knows what


THINKING = ("Anthropic", "Google Gemini", "DeepSeek",
            "Amazon Bedrock, Converse")  # fmt: skip


@asked(lambda case: case.row in THINKING)
def test_reasoning_is_no_part_of_what_is_compared(case: Case, way: str) -> None:
    witness = Witness()
    script = always("Paris", reasoning=("France, hence",))
    with case.server(script) as server:
        guard = SNNEGuard(case.chat(server), n=3, observers=[witness], method="snne")
        ask(guard, "x", way)
    members = [witness.last.answer, *witness.last.samples]
    assert [member.text for member in members if member] == ["Paris"] * 3
    assert all(member.reasoned for member in members if member)


@asked()
def test_tools_that_the_provider_only_proposes_do_not_stop_the_samples(
    case: Case, way: str
) -> None:
    def weather(city: str) -> str:
        """Tell the weather of a city."""
        return city

    with case.server(split("Paris", ["Paris"])) as server:
        model = case.chat(server).bind_tools([weather])
        found = record(ask(SNNEGuard(model, n=3), "x", way))
        bodies = [request.body for request in server.requests]
    assert found["n_used"] == 3
    assert "side_effects" not in found["reasons"]
    tools = [body.get("tools") or body["toolConfig"]["tools"] for body in bodies]
    assert all(each == tools[0] for each in tools)


ONCE_MORE = ("OpenAI", "Anthropic", "Google Gemini", "Mistral", "Ollama",
             "Amazon Bedrock, Converse", "Groq", "Fireworks",
             "Hugging Face, endpoints")  # fmt: skip


@pytest.mark.parametrize("status", [429, 503])
@asked(lambda case: case.row in ONCE_MORE)
def test_what_is_transient_is_tried_again_by_the_guard_alone(
    case: Case, way: str, status: int
) -> None:
    failed: list[Request] = []

    def script(request: Request) -> Reply:
        if failed:
            return always("Paris")(request)
        failed.append(request)
        return error(status, "later")

    with case.server(split("Paris", script)) as server:
        model = case.chat(server)
        found = record(ask(SNNEGuard(model, n=2, max_attempts=2), "x", way))
        samples = [request for request in server.asked if is_sample(request)]
        billed = server.billed
    assert len(samples) == 2
    assert (found["n_used"], found["cost"]["attempts"]) == (2, 3)
    assert found["cost"]["completion_tokens"] == billed.completion_tokens
    assert "samples_failed" not in found["reasons"]


CACHING = ("OpenAI", "Azure OpenAI", "Anthropic", "Google Gemini",
           "Amazon Bedrock, Converse", "DeepSeek")  # fmt: skip


@asked(lambda case: case.row in CACHING)
def test_tokens_from_a_prompt_cache_are_counted_once(case: Case, way: str) -> None:
    usage = Usage(prompt=100, completion=3, cached=60)
    with case.server(always("Paris", usage=usage)) as server:
        found = record(ask(SNNEGuard(case.chat(server), n=2), "x", way))
    cost = found["cost"]
    assert (cost["prompt_tokens"], cost["cached_tokens"]) == (200, 120)
    assert cost["completion_tokens"] == 6


@pytest.mark.parametrize("way", WHOLE)
def test_anthropic_takes_no_temperature_but_1_while_it_thinks(way: str) -> None:
    case = CASES["Anthropic"]
    message = "`temperature` may only be set to 1 when thinking is enabled."

    def thinking(request: Request) -> Reply:
        if request.temperature not in (None, 1.0):
            return error(400, message)
        return always("Paris", reasoning=("hm",))(request)

    options: dict[str, Any] = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "max_tokens": 2000,
        "temperature": None,
    }
    with case.server(thinking) as server:
        guard = SNNEGuard(case.chat(server, **options), temperature=0.7, n=3)
        told = [record(ask(guard, "x", way)) for _ in range(2)]
        temperatures = [request.temperature for request in server.asked]
    for found in told:
        assert found["n_used"] == 3
        assert "temperature_unset" in found["reasons"]
    # Learnt once: the second call asks for none.
    assert len([t for t in temperatures[-3:] if t is not None]) == 0
    with case.server(thinking) as server:
        found = record(ask(SNNEGuard(case.chat(server, **options)), "x", way))
        assert {request.temperature for request in server.asked} == {None, 1.0}
    assert "temperature_unset" not in found["reasons"]
