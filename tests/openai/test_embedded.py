"""A guarded client of the embedded model, a server that others have written."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard.openai import guard_client
from tests.support.observers import Watcher
from tests.support.openai_clients import content

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stream", [False, True])
def test_samples_come_in_one_request_with_log_probabilities(*, stream: bool) -> None:
    from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

    request: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_tokens": 40,
    }
    watcher = Watcher()
    with openai.OpenAI(base_url=embedded_server_url(), api_key="-") as own:
        client = guard_client(own, observers=[watcher])
        create: Any = client.chat.completions.create
        if stream:
            parts = list(create(**request, stream=True))
            text, record = content(parts), parts[-1].snne_guard
        else:
            answer = create(**request)
            text, record = answer.choices[0].message.content, answer.snne_guard
    assessment = watcher.only
    assert assessment.answer is not None
    assert assessment.answer.text == text
    assert len(assessment.samples) == 4
    replies = [assessment.answer, *assessment.samples]
    assert all(reply.token_logprobs for reply in replies)
    for reply in replies:
        spelt = "".join("".join(reply.tokens or ()).split())
        # A character that is split between tokens is decoded from neither.
        assert "\N{REPLACEMENT CHARACTER}" in spelt or spelt == "".join(
            reply.text.split()
        )
    assert record["cost"]["attempts"] == 2
