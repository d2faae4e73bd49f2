"""Guards for the ``openai`` package on a real llama.cpp server and a real model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from snne_guard import AsyncOpenAIGuard, OpenAIGuard
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

pytestmark = pytest.mark.usefixtures("embedded")  # which skips where there is none

OPTIONS: dict[str, Any] = {
    "temperature": 0,
    "seed": 1,
    "max_tokens": 16,
    "stop": ["\n", "."],
}
MESSAGES: list[Any] = [
    {"role": "system", "content": "Answer in one short sentence."},
    {"role": "user", "content": "What is the chemical symbol for gold?"},
]


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=embedded_server_url(), api_key="none") as whom:
        yield whom


def test_one_request_brings_all_samples_with_their_log_probabilities(
    client: openai.OpenAI,
) -> None:
    guard = OpenAIGuard(
        client,
        model=MODEL_NAME,
        threshold=0.5,
        options=OPTIONS,
        schedule="answer_first",  # rounding depends on what is computed beside it
    )
    found = guard.assess(MESSAGES)
    assert found.answer is not None
    assert "Au" in found.answer.text
    assert (found.method, len(found.samples), found.cost.calls) == ("wsnne", 4, 2)
    assert not any(each.misaligned for each in (found.answer, *found.samples))
    assert len({each.text for each in found.samples}) > 1  # drawn, not repeated
    assert found.answer.model
    # The answer is what the client alone would have got.
    alone = client.chat.completions.create(
        model=MODEL_NAME, messages=MESSAGES, **OPTIONS
    )
    assert alone.choices[0].message.content == found.answer.text


async def test_the_twin_draws_the_same_with_the_same_seed(
    client: openai.OpenAI,
) -> None:
    settings: dict[str, Any] = {"model": MODEL_NAME, "n": 3, "options": OPTIONS}
    settings["schedule"] = "answer_first"
    found = OpenAIGuard(client, **settings).assess(MESSAGES)
    async with openai.AsyncOpenAI(
        base_url=embedded_server_url(), api_key="none"
    ) as whom:
        other = await AsyncOpenAIGuard(whom, **settings).assess(MESSAGES)
    assert other.scored == found.scored
    assert other.uncertainty == pytest.approx(found.uncertainty, abs=1e-6)


def test_what_one_request_cannot_hold_comes_in_two(client: openai.OpenAI) -> None:
    guard = OpenAIGuard(
        client,
        model=MODEL_NAME,
        n=17,
        include_answer=False,
        options={**OPTIONS, "max_tokens": 2},
        min_samples=2,
    )
    found = guard.assess("Say a word.")
    assert len(found.samples) == 17
    assert found.cost.calls < 17
