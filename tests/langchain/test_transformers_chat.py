"""A local model as a LangChain chat model: replies, streams, settings, bad input."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langchain_core.callbacks import (
    AsyncCallbackManager,
    BaseCallbackHandler,
    CallbackManager,
)
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration

from snne_guard import ConfigurationError, InputError, TransformersChatModel
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from tests.support.hf_oracle import teacher_forced
from tests.support.tiny_llama import make_model, make_tokenizer

LLAMA, TOKENIZER = make_model(), make_tokenizer()
LOCAL = HuggingFaceModel(LLAMA, TOKENIZER, name="tiny")
QUESTION = "hi"
OPTIONS: dict[str, Any] = {"temperature": 1.0, "max_tokens": 12, "seed": 1}


@pytest.fixture
def chat() -> TransformersChatModel:
    return TransformersChatModel(LOCAL, **OPTIONS)


def drawn(n: int = 1, **settings: Any) -> list[str]:
    """Return what the model underneath says to the question."""
    given = GenerationSettings(**{"max_tokens": 12, "seed": 1, **settings})
    prompt = [{"role": "user", "content": QUESTION}]
    (replies,) = LOCAL.generate([prompt], n=n, settings=given)
    return [reply.text for reply in replies]


def test_a_reply_and_what_is_told_of_it(chat: TransformersChatModel) -> None:
    answer = chat.invoke(QUESTION)
    assert [answer.content] == drawn()
    assert answer.response_metadata == {
        "finish_reason": "length",
        "model_name": "tiny",
        "model_provider": "huggingface",
    }
    prompt = len(TOKENIZER("<turn>user:hi<turn>assistant:")["input_ids"])
    assert answer.usage_metadata == {
        "input_tokens": prompt,
        "output_tokens": 12,
        "total_tokens": prompt + 12,
    }


def test_several_replies_come_from_one_request(chat: TransformersChatModel) -> None:
    result = chat.generate([[HumanMessage(QUESTION)]], n=3)
    (replies,) = result.generations
    assert [reply.text for reply in replies] == drawn(3)
    messages = [reply.message for reply in replies if isinstance(reply, ChatGeneration)]
    usages = [
        message.usage_metadata for message in messages if isinstance(message, AIMessage)
    ]
    assert usages[1:] == [None, None]
    assert usages[0] is not None
    (together,) = LOCAL.generate(
        [[{"role": "user", "content": QUESTION}]],
        n=3,
        settings=GenerationSettings(max_tokens=12, seed=1),
    )
    written = sum(reply.completion_tokens for reply in together)
    assert usages[0]["output_tokens"] == written > 24


def test_log_probabilities_have_the_form_of_openai(chat: TransformersChatModel) -> None:
    answer = chat.invoke(QUESTION, logprobs=True, temperature=0.5)
    content = answer.response_metadata["logprobs"]["content"]
    assert "".join(entry["token"] for entry in content) == answer.content
    assert all(entry["bytes"] == list(entry["token"].encode()) for entry in content)
    ids = TOKENIZER("<turn>user:hi<turn>assistant:")["input_ids"]
    given = GenerationSettings(max_tokens=12, seed=1, temperature=0.5)
    ((reply,),) = LOCAL.generate(
        [[{"role": "user", "content": QUESTION}]], settings=given
    )
    expected = teacher_forced(LLAMA, ids, [token.id for token in reply.tokens])
    own = [entry["logprob"] for entry in content]
    assert own == pytest.approx(expected, abs=2e-4)
    assert own != pytest.approx([entry["sampling_logprob"] for entry in content])
    assert "logprobs" not in chat.invoke(QUESTION).response_metadata


def test_a_call_may_set_what_the_fields_set(chat: TransformersChatModel) -> None:
    assert [chat.invoke(QUESTION, seed=9).content] == drawn(seed=9)
    assert [chat.bind(temperature=0).invoke(QUESTION).content] == drawn(temperature=0.0)
    assert [chat.invoke(QUESTION, top_k=2).content] == drawn(top_k=2)
    assert [chat.invoke(QUESTION, top_p=0.3).content] == drawn(top_p=0.3)
    assert [chat.invoke(QUESTION, max_tokens=3).content] == drawn(max_tokens=3)
    (whole,) = drawn()
    stop = whole[4]
    assert chat.invoke(QUESTION, stop=[stop]).content == whole[: whole.find(stop)]
    stopping = TransformersChatModel(LOCAL, stop=[stop], **OPTIONS)
    assert stopping.invoke(QUESTION).content == whole[: whole.find(stop)]
    assert stopping.invoke(QUESTION, stop=[]).content == whole


def test_without_a_temperature_the_model_draws_as_it_recommends() -> None:
    greedy = TransformersChatModel(LOCAL, max_tokens=12)
    assert [greedy.invoke(QUESTION).content] == drawn(temperature=0.0)
    model = make_model()
    model.generation_config.do_sample = True
    model.generation_config.temperature = 0.6
    model.generation_config.top_p = 0.9
    sampling = TransformersChatModel(
        HuggingFaceModel(model, TOKENIZER), max_tokens=12, seed=1
    )
    assert [sampling.invoke(QUESTION).content] == drawn(temperature=0.6, top_p=0.9)
    plain = sampling.bind(temperature=1.0)  # and then nothing else of theirs
    assert [plain.invoke(QUESTION).content] == drawn()


async def test_the_async_twin(chat: TransformersChatModel) -> None:
    assert [(await chat.ainvoke(QUESTION)).content] == drawn()


def check_stream(chunks: list[AIMessageChunk]) -> None:
    whole = sum(chunks[1:], start=chunks[0])
    assert [whole.text] == drawn()
    assert sum(bool(chunk.content) for chunk in chunks) > 5
    assert whole.response_metadata["finish_reason"] == "length"
    assert whole.response_metadata["model_name"] == "tiny"
    content = whole.response_metadata["logprobs"]["content"]
    assert "".join(entry["token"] for entry in content) == whole.content
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 12
    assert chunks[-1].chunk_position == "last"


def test_tokens_stream_as_they_are_drawn(chat: TransformersChatModel) -> None:
    check_stream(list(chat.stream(QUESTION, logprobs=True)))


async def test_tokens_stream_to_tasks(chat: TransformersChatModel) -> None:
    check_stream([chunk async for chunk in chat.astream(QUESTION, logprobs=True)])


class Listening(BaseCallbackHandler):
    def __init__(self) -> None:
        self.tokens: list[str] = []

    def on_chat_model_start(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def on_llm_new_token(self, token: Any, **_kwargs: Any) -> None:
        self.tokens.append(token)


def test_streaming_lets_handlers_listen_to_an_invoke() -> None:
    listening = Listening()
    chat = TransformersChatModel(LOCAL, streaming=True, **OPTIONS)
    answer = chat.invoke(QUESTION, config={"callbacks": [listening]})
    assert "".join(listening.tokens) == answer.content
    assert [answer.content] == drawn()


async def test_handlers_listen_to_an_ainvoke() -> None:
    listening = Listening()
    chat = TransformersChatModel(LOCAL, streaming=True, **OPTIONS)
    answer = await chat.ainvoke(QUESTION, config={"callbacks": [listening]})
    assert "".join(listening.tokens) == answer.content


def started(kind: Any, listening: Listening) -> Any:
    return kind.configure(inheritable_callbacks=[listening])


async def test_a_run_that_comes_along_hears_of_each_token(
    chat: TransformersChatModel,
) -> None:
    """LangChain's newer event streams leave it to the class to tell of tokens."""
    messages: list[Any] = [HumanMessage(QUESTION)]
    here, there = Listening(), Listening()
    (run,) = started(CallbackManager, here).on_chat_model_start({}, [messages])
    chunks = [chunk.text for chunk in chat._stream(messages, run_manager=run)]
    assert here.tokens == chunks[:-1]
    manager = started(AsyncCallbackManager, there)
    (task,) = await manager.on_chat_model_start({}, [messages])
    async for _ in chat._astream(messages, run_manager=task):
        pass
    assert there.tokens == here.tokens


@pytest.mark.parametrize("config", [None, {"max_concurrency": 2}])
def test_a_batch_replies_to_each(config: Any) -> None:
    chat = TransformersChatModel(LOCAL, **OPTIONS)
    questions = [f"q{k}" for k in range(6)]
    replies = chat.batch([*questions], config)
    alone = [chat.invoke(question).content for question in questions]
    assert [reply.content for reply in replies] == alone
    assert chat.batch([]) == []


def test_all_that_is_said_is_read() -> None:
    chat = TransformersChatModel(LOCAL, **OPTIONS)
    blocks: list[Any] = ["he", {"type": "text", "text": "llo"}]
    thought: list[Any] = [{"type": "reasoning", "reasoning": "hm"}, "yes"]
    messages = [
        SystemMessage("be brief"),
        HumanMessage(content=blocks),
        AIMessage(content=thought),
        ChatMessage(role="critic", content="so?"),
    ]
    text = "<turn>system:be brief<turn>user:hello<turn>assistant:yes<turn>critic:so?"
    ((reply,),) = LOCAL.generate(
        [f"{text}<turn>assistant:"],
        settings=GenerationSettings(max_tokens=12, seed=1),
    )
    assert chat.invoke(messages).content == reply.text


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            HumanMessage(content=[{"type": "image_url", "image_url": "x"}]),
            "takes text; got a block of type 'image_url' in a HumanMessage",
        ),
        (
            ToolMessage("3", tool_call_id="1"),
            "of system, user and assistant; got a ToolMessage",
        ),
        (
            AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
            "takes no tools; got an AIMessage that calls some",
        ),
    ],
)
def test_what_a_local_model_cannot_read(
    chat: TransformersChatModel, message: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        chat.invoke([message])


def test_what_no_call_may_set(chat: TransformersChatModel) -> None:
    with pytest.raises(ConfigurationError, match=r"a call may set .* got tempature"):
        chat.invoke(QUESTION, tempature=1)
    with pytest.raises(
        ConfigurationError, match="n must be a whole number from 1 on; got 0"
    ):
        chat.invoke(QUESTION, n=0)
    with pytest.raises(
        ConfigurationError, match="n must be a whole number from 1 on; got 'two'"
    ):
        chat.invoke(QUESTION, n="two")


@pytest.mark.parametrize(
    "options",
    [{"max_tokens": 0}, {"temperature": math.inf}, {"tempature": 1}, {"n": 0}],
)
def test_fields_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        TransformersChatModel(LOCAL, **options)


def test_tokens_are_counted_as_the_model_counts_them(
    chat: TransformersChatModel,
) -> None:
    assert chat.get_num_tokens("h\u00e9") == 3


def test_what_tracers_are_told() -> None:
    chat = TransformersChatModel(LOCAL, temperature=0.3, stop=["x"])
    assert chat._get_ls_params() == {
        "ls_provider": "huggingface",
        "ls_model_name": "tiny",
        "ls_model_type": "chat",
        "ls_max_tokens": 256,
        "ls_temperature": 0.3,
        "ls_stop": ["x"],
    }
    assert "ls_temperature" not in TransformersChatModel(LOCAL)._get_ls_params()
    assert chat._identifying_params["model_name"] == "tiny"
    assert chat._llm_type == "snne-guard-transformers"


def test_a_model_from_a_folder(tmp_path: Any) -> None:
    LLAMA.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    chat = TransformersChatModel.from_pretrained(
        str(tmp_path), load={"local_files_only": True}, **OPTIONS
    )
    assert [chat.invoke(QUESTION).content] == drawn()
