"""Messages through the chat template, texts as they are, and what neither takes."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.hf_prompts import encode
from tests.support.tiny_llama import CHAT_TEMPLATE, NO_SYSTEM, make_tokenizer

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}


def read(tokenizer: Any, ids: tuple[int, ...]) -> str:
    text: str = tokenizer.decode(ids)
    return text


def test_messages_go_through_the_chat_template() -> None:
    tokenizer = make_tokenizer()
    ids = encode(tokenizer, [SYSTEM, USER])
    assert read(tokenizer, ids) == "<turn>system:be brief<turn>user:hi<turn>assistant:"
    assert ids[0] == 2  # one token, not letters


def test_a_text_is_read_as_it_is() -> None:
    tokenizer = make_tokenizer()
    assert read(tokenizer, encode(tokenizer, "Once upon")) == "Once upon"


def test_messages_may_be_a_text_to_go_on_with() -> None:
    for tokenizer in (make_tokenizer(), make_tokenizer(chat_template=None)):
        ids = encode(tokenizer, [USER], chat_template="")
        assert ids == encode(tokenizer, "hi")
        both = encode(tokenizer, [SYSTEM, USER], chat_template="")
        assert read(tokenizer, both) == "be brief\nhi"
        with pytest.raises(InputError, match="at least one token"):
            encode(tokenizer, [], chat_template="")


def test_a_system_message_that_the_template_does_not_know() -> None:
    tokenizer = make_tokenizer(chat_template=NO_SYSTEM)
    ids = encode(tokenizer, [SYSTEM, USER])
    assert read(tokenizer, ids) == "<turn>user:be brief\n\nhi<turn>assistant:"


@pytest.mark.parametrize("messages", [[SYSTEM], [SYSTEM, USER], [USER]])
def test_messages_that_the_template_refuses(messages: list[Any]) -> None:
    tokenizer = make_tokenizer(
        chat_template="{{ raise_exception('roles must alternate') }}"
    )
    roles = ", ".join(message["role"] for message in messages)
    with pytest.raises(InputError, match=f"roles {roles}: roles must alternate"):
        encode(tokenizer, messages)


def test_without_a_chat_template() -> None:
    tokenizer = make_tokenizer(chat_template=None)
    with pytest.raises(ConfigurationError, match="has no chat template"):
        encode(tokenizer, [USER])
    ids = encode(tokenizer, [USER], chat_template=CHAT_TEMPLATE)
    assert read(tokenizer, ids) == "<turn>user:hi<turn>assistant:"
    assert encode(tokenizer, "hi")


def test_nothing_to_read() -> None:
    tokenizer = make_tokenizer()
    with pytest.raises(InputError, match="at least one token"):
        encode(tokenizer, "")
    with pytest.raises(InputError, match="at least one message"):
        encode(tokenizer, [])
