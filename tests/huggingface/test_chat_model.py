"""A local model as a LangChain chat model: replies, settings, bad input."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_tests.unit_tests import ChatModelUnitTests

from snne_guard.errors import InputError
from snne_guard.huggingface import GenerationSettings
from snne_guard.huggingface.chat_model import TransformersChatModel
from snne_guard.langchain import SNNEGuard
from tests.huggingface.support import TOKENIZER, ids_of, teacher_forced, tiny

pytestmark = pytest.mark.slow

LOCAL = tiny()
LLAMA = LOCAL.model
QUESTION = "hi"
PROMPT = "<turn>user:hi<turn>assistant:"
OPTIONS: dict[str, Any] = {"temperature": 1.0, "max_tokens": 12, "seed": 1}


@pytest.fixture
def chat() -> TransformersChatModel:
    return TransformersChatModel(LOCAL, **OPTIONS)


def drawn(n: int = 1, **settings: Any) -> list[str]:
    """Return what the model underneath says to the question."""
    given = GenerationSettings(**{"max_tokens": 12, "seed": 1, **settings})
    (replies,) = LOCAL.generate([PROMPT], n=n, settings=given)
    return [reply.text for reply in replies]


def contents(messages: Sequence[Any]) -> list[Any]:
    return [message.content for message in messages]


def test_a_reply_and_its_metadata(chat: TransformersChatModel) -> None:
    answer = chat.invoke(QUESTION)
    assert [answer.content] == drawn()
    assert answer.response_metadata == {
        "finish_reason": "length",
        "model_name": "tiny",
        "model_provider": "huggingface",
    }
    prompt = len(ids_of(PROMPT))
    assert answer.usage_metadata == {
        "input_tokens": prompt,
        "output_tokens": 12,
        "total_tokens": prompt + 12,
    }


def test_several_replies_come_from_one_request(chat: TransformersChatModel) -> None:
    result: Any = chat.generate([[HumanMessage(QUESTION)]], n=3, logprobs=True)
    messages = [each.message for each in result.generations[0]]
    assert contents(messages) == drawn(3)
    assert [message.usage_metadata for message in messages[1:]] == [None, None]
    assert messages[0].usage_metadata["output_tokens"] == sum(
        len(message.response_metadata["logprobs"]["content"])
        + (message.response_metadata["finish_reason"] == "stop")
        for message in messages
    )


def test_log_probabilities_have_the_form_of_openai(chat: TransformersChatModel) -> None:
    answer = chat.invoke(QUESTION, logprobs=True, temperature=0.5)
    content = answer.response_metadata["logprobs"]["content"]
    assert "".join(entry["token"] for entry in content) == answer.content
    assert all(entry["bytes"] == list(entry["token"].encode()) for entry in content)
    given = GenerationSettings(max_tokens=12, seed=1, temperature=0.5)
    ((reply,),) = LOCAL.generate([PROMPT], settings=given)
    expected = teacher_forced(LLAMA, ids_of(PROMPT), reply.token_ids)
    assert [entry["logprob"] for entry in content] == pytest.approx(expected, abs=2e-4)
    assert "logprobs" not in chat.invoke(QUESTION).response_metadata


def test_a_call_may_set_what_the_fields_set(chat: TransformersChatModel) -> None:
    assert [chat.invoke(QUESTION, seed=9).content] == drawn(seed=9)
    few: dict[str, Any] = {
        "temperature": 0.5,
        "top_k": 2,
        "top_p": 0.3,
        "max_tokens": 3,
    }
    assert [chat.bind(**few).invoke(QUESTION).content] == drawn(**few)
    (whole,) = drawn()
    stop = whole[4]
    stopping = TransformersChatModel(LOCAL, stop=[stop], **OPTIONS)
    assert stopping.invoke(QUESTION).content == whole[: whole.find(stop)]
    assert stopping.invoke(QUESTION, stop=[]).content == whole
    words: Any = whole[4:6]  # as OpenAI takes it, too
    assert stopping.bind(stop=words).invoke(QUESTION).content == whole[:4]


async def test_the_async_twin(chat: TransformersChatModel) -> None:
    assert [(await chat.ainvoke(QUESTION)).content] == drawn()


async def test_a_cancelled_task_ends_its_draw(chat: TransformersChatModel) -> None:
    passes: list[int] = []
    begun = threading.Event()

    def slow(*_: object) -> None:
        passes.append(1)
        begun.set()
        time.sleep(0.01)

    hook = LLAMA.register_forward_hook(slow)
    task = asyncio.create_task(chat.ainvoke(QUESTION, max_tokens=450))
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    drawn()  # waits for the draw to end
    hook.remove()
    assert len(passes) < 400


def test_roles_and_blocks_of_text_are_read(chat: TransformersChatModel) -> None:
    blocks: list[Any] = ["he", {"type": "text", "text": "llo"}]
    messages = [
        SystemMessage("be brief"),
        HumanMessage(content=blocks),
        AIMessageChunk(content="yes"),
        HumanMessage("so?"),
    ]
    text = "<turn>system:be brief<turn>user:hello<turn>assistant:yes<turn>user:so?"
    ((reply,),) = LOCAL.generate(
        [f"{text}<turn>assistant:"], settings=GenerationSettings(max_tokens=12, seed=1)
    )
    assert chat.invoke(messages).content == reply.text


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage(content=[{"type": "image_url", "image_url": "x"}]),
        HumanMessage(content=[{"type": "file", "base64": "eA=="}]),
        AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
        ToolMessage("3", tool_call_id="1"),
    ],
)
def test_messages_that_a_local_model_cannot_read(
    chat: TransformersChatModel, message: Any
) -> None:
    with pytest.raises(InputError, match="takes text"):
        chat.invoke([message])


def test_a_misspelt_option_of_a_call(chat: TransformersChatModel) -> None:
    with pytest.raises(TypeError, match="tempature"):
        chat.invoke(QUESTION, tempature=1)


@pytest.mark.parametrize(
    "fields",
    [{"max_tokens": 0}, {"tempature": 1}],
)
def test_fields_out_of_range(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        TransformersChatModel(LOCAL, **fields)


def test_tokens_are_counted_as_the_model_counts_them(
    chat: TransformersChatModel,
) -> None:
    assert chat.get_num_tokens("h\u00e9") == 3


def test_a_model_from_a_folder(tmp_path: Any) -> None:
    LLAMA.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    chat = TransformersChatModel.from_pretrained(
        str(tmp_path), load={"device_map": "cpu"}, **OPTIONS
    )
    assert [chat.invoke(QUESTION).content] == drawn()


def test_a_guard_draws_all_samples_in_one_request(chat: TransformersChatModel) -> None:
    answer = chat.model_copy(update={"temperature": 0.0, "max_tokens": 4})
    assessment = SNNEGuard(answer, n=5, min_replies=2).assess(QUESTION)
    assert assessment.answer is not None
    assert [assessment.answer.text] == drawn(temperature=0.0, max_tokens=4)
    assert len(assessment.samples) == 4
    assert len({sample.text for sample in assessment.samples}) > 1
    assert all(sample.token_logprobs for sample in assessment.samples)
    assert assessment.cost.calls == 2


class TestUnitSuite(ChatModelUnitTests):
    """It skips two tests: no environment is read, and weights are no JSON."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return TransformersChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": LOCAL}

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {"temperature": 0, "max_tokens": 20, "stop": []}

    @pytest.mark.xfail(reason="a stream is one chunk")
    def test_init_streaming(self) -> None:
        super().test_init_streaming()
