"""Messages through the chat template, texts as they are, and what neither takes."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface.text import encode
from tests.huggingface.support import CHAT_TEMPLATE, NO_SYSTEM, make_tokenizer

pytestmark = pytest.mark.slow

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}


def test_messages_go_through_the_chat_template() -> None:
    tokenizer = make_tokenizer()
    ids = encode(tokenizer, [SYSTEM, USER])
    expected = "<turn>system:be brief<turn>user:hi<turn>assistant:"
    assert tokenizer.decode(ids) == expected
    assert ids[0] == 2  # one token, not letters
    assert tokenizer.decode(encode(tokenizer, "Once upon")) == "Once upon"


def test_messages_may_be_a_text_to_continue() -> None:
    tokenizer = make_tokenizer(chat_template=None)
    ids = encode(tokenizer, [SYSTEM, USER], chat_template="")
    assert tokenizer.decode(ids) == "be brief\nhi"


def test_a_system_message_that_the_template_refuses() -> None:
    tokenizer = make_tokenizer(chat_template=NO_SYSTEM)
    ids = encode(tokenizer, [SYSTEM, USER])
    assert tokenizer.decode(ids) == "<turn>user:be brief\n\nhi<turn>assistant:"


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
    assert tokenizer.decode(ids) == "<turn>user:hi<turn>assistant:"


def test_prompts_without_tokens() -> None:
    tokenizer = make_tokenizer()
    with pytest.raises(InputError, match="at least one token"):
        encode(tokenizer, "")
    with pytest.raises(InputError, match="at least one message"):
        encode(tokenizer, [])
