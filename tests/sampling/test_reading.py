"""Which log-probabilities are a text's own, and what calls of tools look like."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from snne_guard.sampling.reading import (
    Logprobs,
    canonical_calls,
    parsed_arguments,
    read_logprobs,
)

MISALIGNED = Logprobs(None, misaligned=True)


def entries(*tokens: str | tuple[str, Sequence[int] | None]) -> list[dict[str, Any]]:
    """Number the tokens by their log-probabilities: -1, -2, ..."""
    pairs = [(token, None) if isinstance(token, str) else token for token in tokens]
    return [
        {"token": token, "logprob": -float(position), "bytes": written}
        for position, (token, written) in enumerate(pairs, start=1)
    ]


def places(found: Logprobs) -> list[int] | None:
    """Return which tokens were taken, by their numbers."""
    assert found.misaligned == (found.values is None)
    return None if found.values is None else [-int(value) for value in found.values]


@pytest.mark.parametrize(
    ("text", "tokens", "taken"),
    [
        ("Paris", ["Par", "is"], [1, 2]),
        # Servers that decode tokens one by one lose the space before them.
        ("It is", ["It", "is"], [1, 2]),
        ("It is", ["\u2581It", "\u2581is"], [1, 2]),
        ("It is\n", ["It", "\u0120is", "\u010a"], [1, 2, 3]),
        ("Paris ", ["Paris"], [1]),
        ("Paris", [" Paris", "\n", ""], [1, 2, 3]),
        # Behind the text: a stop string, the end of the turn.
        ("Paris", ["Paris", "."], [1]),
        ("Paris", ["Par", "is.", "\n\n"], [1, 2]),
        ("Paris", ["Paris", "<|im_end|>"], [1]),
        # Other texts, and parts of this one.
        ("Paris", ["Rome"], None),
        ("Paris", ["Par"], None),
        ("Paris", ["?", "?"], None),
        ("Paris", ["The", " Paris"], None),
        ("Paris", ["", "x"], None),
        # No text that could be compared: calls of tools.
        ("", ['{"a":', "1}"], [1, 2]),
        (" \n", ["x"], [1]),
        # The mark that a tokenizer writes for a space is a letter of some languages.
        ("\u0120", ["\u0120"], [1]),
    ],
)
def test_the_tokens_of_the_text_are_taken(
    text: str, tokens: list[str], taken: list[int] | None
) -> None:
    assert places(read_logprobs(entries(*tokens), text=text)) == taken


@pytest.mark.parametrize(
    ("text", "tokens", "read"),
    [
        ("Paris", [" Par", "is", "<end>"], (" Par", "is")),
        (
            "\u6771",
            [("\\xe6", [0xE6]), ("\\x9d\\xb1", [0x9D, 0xB1])],
            ("\ufffd", "\ufffd\ufffd"),
        ),
        ("Paris", ["", ""], None),
        ("Paris", ["Rome"], None),
    ],
)
def test_tokens_are_told_as_texts(text: str, tokens: Any, read: Any) -> None:
    assert read_logprobs(entries(*tokens), text=text).tokens == read


def test_tokens_that_do_not_say_what_they_stand_for_are_taken_as_they_are() -> None:
    numbers = [{"token": None, "logprob": -1.0}, {"logprob": -2.0}]
    assert places(read_logprobs(numbers, text="Paris")) == [1, 2]
    assert read_logprobs(numbers, text="Paris", reasoned=True) == MISALIGNED
    one_named = [{"token": "Par", "logprob": -1.0}, {"token": 3, "logprob": -2.0}]
    assert read_logprobs(one_named, text="Paris") == MISALIGNED


PARTY = "\N{PARTY POPPER}"


@pytest.mark.parametrize(
    ("text", "tokens", "taken"),
    [
        # OpenAI writes parts of characters as escapes, and in full in the bytes.
        (
            f"a{PARTY}",
            [("a", b"a"), ("\\xf0\\x9f", b"\xf0\x9f"), ("\\x8e\\x89", b"\x8e\x89")],
            [1, 2, 3],
        ),
        ("Paris", [("Par", None), ("is", list(b"is"))], [1, 2]),
        ("It is", [("It", ["?"]), ("is", None)], [1, 2]),
        ("It is", [("It", [999]), ("is", None)], [1, 2]),
        ("It is", [("It", "no"), ("is", None)], [1, 2]),
        # Others lose what was cut apart.
        (f"a {PARTY} b", ["a", "\ufffd", "\ufffd", " b"], [1, 2, 3, 4]),
        (f"a {PARTY}", ["a", "\ufffd\ufffd", "<|end|>"], [1, 2, 3]),
        (f"a {PARTY} b", ["a", "\ufffd", " c"], None),
        ("a lot of words", ["a", "\ufffd"], None),
        ("a", ["b", "\ufffd"], None),
    ],
)
def test_characters_that_tokens_cut_apart(
    text: str, tokens: list[Any], taken: list[int] | None
) -> None:
    assert places(read_logprobs(entries(*tokens), text=text)) == taken


def test_reasoning_before_the_text_is_left_out() -> None:
    thought = entries("<think>", "Paris?", "</think>", "\n", "Paris")
    whole = "<think>Paris?</think>\nParis"
    assert places(read_logprobs(thought, text="Paris", whole=whole)) == [5]
    # A server that puts the reasoning aside may list its tokens all the same ...
    assert places(read_logprobs(thought, text="Paris", reasoned=True)) == [5]
    ended = entries("Rome?", "Paris", "<|im_end|>")
    assert places(read_logprobs(ended, text="Paris", reasoned=True)) == [2]
    # ... or not.
    alone = entries("Par", "is", ".")
    assert places(read_logprobs(alone, text="Paris", reasoned=True)) == [1, 2]
    # Where the list breaks off in the reasoning, the text is not in it.
    cut = entries("Is it Paris", " or", " Rome?")
    assert read_logprobs(cut, text="Paris", reasoned=True) == MISALIGNED
    assert read_logprobs(cut, text="Paris", whole=whole) == MISALIGNED
    lost = entries("\ufffd", "Paris")
    assert read_logprobs(lost, text="Paris", whole=whole) == MISALIGNED


def cuts(data: st.DataObject, text: bytes) -> list[bytes]:
    """Cut bytes into tokens anywhere, also in the middle of a character."""
    inner = st.integers(1, max(1, len(text) - 1))
    edges = sorted({0, len(text), *data.draw(st.sets(inner, max_size=6))})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@example(text="\u2581", tail="", data=None)
@given(st.text(min_size=1, max_size=20), st.text(max_size=5), st.data())
def test_however_a_text_is_cut_its_own_tokens_are_taken(
    text: str, tail: str, data: st.DataObject | None
) -> None:
    written = text.encode(errors="replace")
    parts = [written] if data is None else cuts(data, written)
    behind = [tail.encode(errors="replace")]
    tokens = entries(*(("?", list(part)) for part in (*parts, *behind)))
    found = read_logprobs(tokens, text=text)
    assert found.values is not None
    # What holds nothing but white space at the edges may be in it or not.
    needed = [-1.0 - place for place, part in enumerate(parts) if part.strip()]
    marks = any(mark in text for mark in "\u2581\u0120\u010a\ufffd")
    assert marks or set(needed) <= set(found.values)
    assert found.values == tuple(sorted(found.values, reverse=True))


@given(
    st.text("ab \n", min_size=1, max_size=12), st.text("ab \n", min_size=1, max_size=12)
)
def test_tokens_are_a_text_s_own_only_if_it_begins_them(text: str, other: str) -> None:
    found = read_logprobs(entries(*other), text=text)
    wanted, given_ = "".join(text.split()), "".join(other.split())
    assert (found.values is not None) == given_.startswith(wanted)


@pytest.mark.parametrize(
    "bad",
    [
        None, {}, [], "text", b"bytes", 3, [{"token": "x"}], [None],
        [{"token": "x", "logprob": math.nan}], [{"token": "x", "logprob": 0.1}],
        [{"token": "x", "logprob": "-1"}],
    ],
)  # fmt: skip
def test_what_are_no_log_probabilities_is_missing_and_not_misaligned(bad: Any) -> None:
    assert read_logprobs(bad, text="x") == Logprobs(None)


def test_arguments_of_calls_are_compared_as_what_they_mean() -> None:
    one = canonical_calls([("f", parsed_arguments('{"b": 1.0, "a": "x\ny"}'))])
    two = canonical_calls([("f", {"a": "x\ny", "b": 1})])
    assert one == two
    assert canonical_calls([]) is None


@pytest.mark.parametrize("arguments", ['{"a": 1', "", "[" * 100_000])
def test_arguments_that_are_no_json_stay_as_they_are(arguments: str) -> None:
    assert parsed_arguments(arguments) == arguments


def test_arguments_that_json_has_no_form_for_are_text() -> None:
    args = parsed_arguments('{"a": NaN}')
    assert canonical_calls([("f", args)]) == '[{"args":"{\'a\': nan}","name":"f"}]'
    assert parsed_arguments({"a": 1}) == {"a": 1}
