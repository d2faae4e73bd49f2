"""Prompts to tokens, and the text that each token adds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.sampling.huggingface.text import encode, token_texts
from tests.huggingface.support import make_tokenizer

pytestmark = pytest.mark.slow

TOKENIZER = make_tokenizer()
USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


def test_messages_go_through_the_chat_template() -> None:
    ids = encode(TOKENIZER, [SYSTEM, USER])
    expected = "<turn>system:be brief<turn>user:hi<turn>assistant:"
    assert TOKENIZER.decode(ids) == expected
    assert ids[0] == 2  # one token, not letters
    assert TOKENIZER.decode(encode(TOKENIZER, "Once upon")) == "Once upon"


def test_a_prompt_without_tokens() -> None:
    with pytest.raises(InputError, match="at least one token"):
        encode(TOKENIZER, "")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 258), max_size=20))
def test_any_tokens_read_as_the_tokenizer_reads_them_all(ids: list[int]) -> None:
    whole = TOKENIZER.decode(ids, skip_special_tokens=True)
    pieces = token_texts(TOKENIZER, ids)
    assert (len(pieces), "".join(pieces)) == (len(ids), whole)


def test_an_incomplete_character_is_shown_at_the_end() -> None:
    half, rest = ids_of("\u00e9")
    assert token_texts(TOKENIZER, [half]) == ["\N{REPLACEMENT CHARACTER}"]
    assert token_texts(TOKENIZER, [half, rest]) == ["", "\u00e9"]


def test_special_tokens_have_no_text() -> None:
    ids = [ids_of("a")[0], 2, ids_of("b")[0]]
    assert token_texts(TOKENIZER, ids) == ["a", "", "b"]
