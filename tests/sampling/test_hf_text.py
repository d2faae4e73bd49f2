"""Tokens that come one by one: whole characters, stop texts, what is certain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.sampling.hf_text import TextStream
from tests.support.tiny_llama import make_tokenizer

TOKENIZER = make_tokenizer()
texts = st.text(st.sampled_from("ab\u00e9\u4e2d\U0001f600 \n"), max_size=12)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


def read(
    ids: list[int], stop: tuple[str, ...] = ()
) -> tuple[TextStream, list[Any], bool]:
    """Feed tokens until a stop text; return what was released on the way, too."""
    stream = TextStream(TOKENIZER, stop)
    released: list[Any] = []
    stopped = False
    for place, token in enumerate(ids):
        stopped = stream.push(token, -float(place), -1.0)
        if stopped:
            break
        released += stream.release()
    stopped = stopped or stream.finish()
    released += stream.release(everything=True)
    return stream, released, stopped


@given(texts)
def test_the_texts_of_the_tokens_make_up_the_text(text: str) -> None:
    stream, released, stopped = read(ids_of(text))
    assert stream.text == text
    assert not stopped
    assert "".join(token.text for token in stream.tokens) == text
    assert tuple(released) == stream.tokens
    assert [token.id for token in released] == ids_of(text)


@given(st.lists(st.integers(0, 258), max_size=20))
def test_any_tokens_read_as_the_tokenizer_reads_them_all(ids: list[int]) -> None:
    stream, released, _ = read(ids)
    assert stream.text == TOKENIZER.decode(ids, skip_special_tokens=True)
    assert [token.id for token in released] == ids


@given(texts, st.lists(st.text("ab\u00e9", min_size=1, max_size=3), max_size=3))
def test_a_stop_text_ends_the_reply_before_it(text: str, stop: list[str]) -> None:
    stream, released, stopped = read(ids_of(text), tuple(stop))
    # The oracle: the shortest beginning of the text that holds a stop text.
    ends = [end for end in range(len(text) + 1) if any(s in text[:end] for s in stop)]
    assert stopped is bool(ends)
    if ends:
        seen = text[: ends[0]]
        text = text[: min(seen.find(s) for s in stop if s in seen)]
    assert stream.text == text
    assert "".join(token.text for token in stream.tokens) == text
    assert tuple(released) == stream.tokens


def test_what_may_begin_a_stop_text_is_held_back() -> None:
    stream = TextStream(TOKENIZER, ("\n\nQ:",))
    shown = []
    for token in ids_of("A\n\nQ\n\nQ:more"):
        if stream.push(token, -0.5, -0.5):
            break
        shown.append("".join(each.text for each in stream.release()))
    assert shown == ["A", "", "", "", "\n\nQ", "", ""][: len(shown)]
    assert stream.text == "A\n\nQ"


def test_a_token_across_the_cut_keeps_what_is_before_it() -> None:
    class Words:
        def decode(self, token_ids: Any, **_options: Any) -> str:
            return "".join(("one ", "two###three", "###")[each] for each in token_ids)

    stream = TextStream(Words(), ("###",))
    assert not stream.push(0, -1.0, -1.0)
    assert stream.push(1, -2.0, -2.0)
    assert [token.text for token in stream.tokens] == ["one ", "two"]
    assert [token.logprob for token in stream.tokens] == [-1.0, -2.0]


def test_an_incomplete_character_is_shown_when_the_reply_ends() -> None:
    half = ids_of("\u00e9")[:1]
    stream = TextStream(TOKENIZER)
    assert not stream.push(half[0], -1.0, -1.0)
    assert (stream.text, stream.release()) == ("", ())
    assert not stream.finish()
    assert stream.text == "\N{REPLACEMENT CHARACTER}"
    assert [token.text for token in stream.release()] == [stream.text]


def test_a_stop_text_may_be_the_incomplete_character() -> None:
    stream = TextStream(TOKENIZER, ("\N{REPLACEMENT CHARACTER}",))
    stream.push(ids_of("\u00e9")[0], -1.0, -1.0)
    assert stream.finish()
    assert (stream.text, stream.tokens) == ("", ())


def test_special_tokens_have_no_text() -> None:
    stream, _, _ = read([ids_of("a")[0], 2, ids_of("b")[0]])
    assert [token.text for token in stream.tokens] == ["a", "", "b"]


@pytest.mark.parametrize("stop", [(), ("x",)])
def test_nothing_is_released_twice(stop: tuple[str, ...]) -> None:
    stream = TextStream(TOKENIZER, stop)
    stream.push(ids_of("a")[0], -1.0, -1.0)
    assert len(stream.release()) == 1
    assert stream.release() == ()
    assert stream.release(everything=True) == ()
