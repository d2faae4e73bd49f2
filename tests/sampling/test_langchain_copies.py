"""Copies of LangChain models: for those who retry by themselves."""

from __future__ import annotations

import pytest

from snne_guard.sampling.langchain_copies import without_retries
from tests.support.chat_server import ChatServer, chat_openai, error


def test_a_copy_sends_one_request_and_the_model_itself_goes_on_retrying() -> None:
    with ChatServer([error(503)]) as server:
        model = chat_openai(server, max_retries=1)
        alone = without_retries(model)
        for chat, requests in ((alone, 1), (model, 3)):
            with pytest.raises(Exception, match="503"):
                chat.invoke("Hi")
            assert len(server.requests) == requests


def test_where_a_field_is_enough() -> None:
    mistral = pytest.importorskip("langchain_mistralai")
    model = mistral.ChatMistralAI(model_name="m", api_key="test", max_retries=5)
    assert getattr(without_retries(model), "max_retries") == 0  # noqa: B009 - any class
    assert model.max_retries == 5
