"""Prompts to tokens; the text that each token adds; what of a reply is settled."""

from __future__ import annotations

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.sampling.huggingface.text import encode, settled_text, token_texts
from tests.huggingface.support import make_tokenizer

pytestmark = pytest.mark.slow

TOKENIZER = make_tokenizer()
USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}
texts = st.text(st.sampled_from("ab\u00e9\u4e2d\U0001f600 \n"), max_size=12)
few = settings(max_examples=40, deadline=None)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


def test_messages_go_through_the_chat_template() -> None:
    ids = encode(TOKENIZER, [SYSTEM, USER])
    expected = "<turn>system:be brief<turn>user:hi<turn>assistant:"
    assert TOKENIZER.decode(ids) == expected
    assert ids[0] == 2  # one token, not letters
    assert TOKENIZER.decode(encode(TOKENIZER, "Once upon")) == "Once upon"


def test_a_template_that_refuses_messages_says_why() -> None:
    template = "{{ raise_exception('System role not supported') }}"
    with pytest.raises(jinja2.TemplateError, match="System role not supported"):
        encode(make_tokenizer(chat_template=template), [SYSTEM, USER])


def test_messages_need_a_chat_template() -> None:
    with pytest.raises(ValueError, match="chat_template is not set"):
        encode(make_tokenizer(chat_template=None), [USER])


def test_a_prompt_without_tokens() -> None:
    with pytest.raises(InputError, match="at least one token"):
        encode(TOKENIZER, "")


@few
@given(texts)
def test_the_texts_of_the_tokens_make_up_the_reply(text: str) -> None:
    ids = ids_of(text)
    pieces = token_texts(TOKENIZER, ids)
    assert "".join(pieces) == text
    assert len(pieces) == len(ids)


@few
@given(st.lists(st.integers(0, 258), max_size=20))
def test_any_tokens_read_as_the_tokenizer_reads_them_all(ids: list[int]) -> None:
    whole = TOKENIZER.decode(ids, skip_special_tokens=True)
    assert "".join(token_texts(TOKENIZER, ids)) == whole


def test_an_incomplete_character_is_shown_at_the_end() -> None:
    half, rest = ids_of("\u00e9")
    assert token_texts(TOKENIZER, [half]) == ["\N{REPLACEMENT CHARACTER}"]
    assert token_texts(TOKENIZER, [half, rest]) == ["", "\u00e9"]
    assert settled_text(TOKENIZER, [half], ()) == ""


def test_special_tokens_have_no_text() -> None:
    ids = [ids_of("a")[0], 2, ids_of("b")[0]]
    assert token_texts(TOKENIZER, ids) == ["a", "", "b"]


@few
@given(texts, st.lists(st.text("ab\u00e9", min_size=1, max_size=3), max_size=3))
def test_settled_text_never_holds_a_part_of_a_stop_text(
    text: str, stop: list[str]
) -> None:
    ids = ids_of(text)
    # The oracle: the reply ends where its beginning first holds a stop text.
    ends = [end for end in range(len(text) + 1) if any(s in text[:end] for s in stop)]
    if ends:
        text = text[: ends[0]]
        ids = ids_of(text)
        text = text[: min(text.find(s) for s in stop if s in text)]
    settled = [settled_text(TOKENIZER, ids[:k], stop) for k in range(len(ids) + 1)]
    assert all(text.startswith(each) for each in settled)
    assert len(text) - len(settled[-1]) < max(map(len, stop), default=1)
