"""Tokens that come one by one: whole characters, stop texts, what is certain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.sampling.huggingface.text import ReplyText
from tests.huggingface.support import make_tokenizer

pytestmark = pytest.mark.slow

TOKENIZER = make_tokenizer()
texts = st.text(st.sampled_from("ab\u00e9\u4e2d\U0001f600 \n"), max_size=12)
few = settings(max_examples=40, deadline=None)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


def read(ids: list[int], stop: tuple[str, ...] = ()) -> tuple[ReplyText, str]:
    """Push tokens up to a stop text; return what was certain on the way, too."""
    reply, certain = ReplyText(TOKENIZER, stop), ""
    for token in ids:
        if reply.push(token):
            break
        certain = reply.text[: reply.certain]
    reply.finish()
    return reply, certain


@few
@given(texts)
def test_the_pieces_of_the_tokens_make_up_the_text(text: str) -> None:
    reply, certain = read(ids_of(text))
    assert reply.text == text == "".join(reply.pieces) == certain
    assert len(reply.pieces) == len(ids_of(text))
    assert not reply.stopped


@few
@given(st.lists(st.integers(0, 258), max_size=20))
def test_any_tokens_read_as_the_tokenizer_reads_them_all(ids: list[int]) -> None:
    reply, _ = read(ids)
    assert reply.text == TOKENIZER.decode(ids, skip_special_tokens=True)


@few
@given(texts, st.lists(st.text("ab\u00e9", min_size=1, max_size=3), max_size=3))
def test_a_stop_text_ends_the_reply_before_it(text: str, stop: list[str]) -> None:
    reply, certain = read(ids_of(text), tuple(stop))
    # The oracle: the shortest beginning of the text that holds a stop text.
    ends = [end for end in range(len(text) + 1) if any(s in text[:end] for s in stop)]
    assert reply.stopped is bool(ends)
    if ends:
        seen = text[: ends[0]]
        text = text[: min(seen.find(s) for s in stop if s in seen)]
    assert reply.text == text == "".join(reply.pieces)
    assert text.startswith(certain)


def test_a_token_across_the_cut_keeps_what_is_before_it() -> None:
    class Words:
        def decode(self, token_ids: Any, **_options: Any) -> str:
            return "".join(("one ", "two###three")[each] for each in token_ids)

    reply = ReplyText(Words(), ("###",))
    assert not reply.push(0)
    assert reply.push(1)
    assert reply.pieces == ["one ", "two"]
    assert reply.push(0)  # it is over
    assert (reply.text, reply.certain) == ("one two", 7)


def test_an_incomplete_character_is_shown_when_the_reply_ends() -> None:
    half = ids_of("\u00e9")[0]
    reply = ReplyText(TOKENIZER)
    assert not reply.push(half)
    assert reply.text == ""
    assert not reply.finish()
    assert reply.text == "\N{REPLACEMENT CHARACTER}"


def test_special_tokens_have_no_text() -> None:
    reply, _ = read([ids_of("a")[0], 2, ids_of("b")[0]])
    assert reply.pieces == ["a", "", "b"]
