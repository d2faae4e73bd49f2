"""Which log-probabilities are a text's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.engine.reading import read_logprobs


def entries(*tokens: str | tuple[str, Sequence[int] | None]) -> list[dict[str, Any]]:
    """Number the tokens by their log-probabilities: -1, -2, ..."""
    pairs = [(token, None) if isinstance(token, str) else token for token in tokens]
    return [
        {"token": token, "logprob": -float(position), "bytes": spelt}
        for position, (token, spelt) in enumerate(pairs, start=1)
    ]


def taken(tokens: Sequence[Any], text: str) -> list[int] | None:
    values, _ = read_logprobs(entries(*tokens), text=text)
    return None if values is None else [-int(value) for value in values]


PARTY = "\N{PARTY POPPER}"


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("Paris", ["Par", "is"], [1, 2]),
        # Servers that decode tokens one by one lose the space before them.
        ("It is", ["It", "is"], [1, 2]),
        ("It is", ["\u2581It", "\u2581is"], [1, 2]),
        ("It is\n", ["It", "\u0120is", "\u010a"], [1, 2]),
        ("Paris ", ["Paris"], [1]),
        ("Paris", [" Paris", "\n", ""], [1]),
        # After the text: a stop string, the end of the turn.
        ("Paris", ["Paris", "."], [1]),
        ("Paris", ["Paris", "<|im_end|>"], [1]),
        # Before the text: reasoning.
        ("Paris", ["<think>", "Paris?", "</think>", "\n", "Paris"], [5]),
        ("Paris", ["Rome? ", "Paris", "<|im_end|>"], [2]),
        ("Paris", ["Is it Paris", " or", " Rome?"], None),
        # Other texts, and parts of this one.
        ("Paris", ["Rome"], None),
        ("Paris", ["Par"], None),
        # No text that could be compared: calls of tools.
        ("", ['{"a":', "1}"], [1, 2]),
        # The mark that a tokenizer writes for a space is a letter of some languages.
        ("\u0120", ["\u0120"], [1]),
        # OpenAI writes parts of characters as escapes, and in full in the bytes.
        (
            f"a{PARTY}",
            [("a", b"a"), ("\\xf0\\x9f", b"\xf0\x9f"), ("\\x8e\\x89", b"\x8e\x89")],
            [1, 2, 3],
        ),
        ("Paris", [("Par", None), ("is", list(b"is"))], [1, 2]),
        ("It is", [("It", ["?"]), ("is", None)], [1, 2]),
        ("It is", [("It", [999]), ("is", None)], [1, 2]),
        # Others lose what was split.
        (f"a {PARTY} b", ["a", "\ufffd", "\ufffd", " b"], None),
    ],
)
def test_the_tokens_of_the_text_are_taken(
    text: str, tokens: list[Any], expected: list[int] | None
) -> None:
    assert taken(tokens, text) == expected


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
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
def test_tokens_are_given_as_texts(text: str, tokens: Any, expected: Any) -> None:
    assert read_logprobs(entries(*tokens), text=text)[1] == expected


@pytest.mark.parametrize(
    "bad",
    [
        None, [], "text", [{"token": "x"}], [{"token": "x", "logprob": -1.0}, None],
        [{"token": "x", "logprob": math.nan}], [{"token": "x", "logprob": 0.1}],
        [{"token": "x", "logprob": "-1"}], [{"token": "x", "logprob": -math.inf}],
        [{"token": "x", "logprob": -(10**400)}],
    ],
)  # fmt: skip
def test_what_is_no_log_probability_is_missing(bad: Any) -> None:
    assert read_logprobs(bad, text="x") == (None, None)


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=20), st.text(max_size=5), st.data())
def test_however_a_text_is_split_its_own_tokens_are_taken(
    text: str, tail: str, data: st.DataObject
) -> None:
    spelt = text.encode(errors="replace")
    inner = st.integers(1, max(1, len(spelt) - 1))
    edges = sorted({0, len(spelt), *data.draw(st.sets(inner, max_size=6))})
    parts = [spelt[a:b] for a, b in itertools.pairwise(edges)]
    tokens = [("?", list(part)) for part in (*parts, tail.encode(errors="replace"))]
    values, _ = read_logprobs(entries(*tokens), text=text)
    assert values is not None
    # What holds nothing but white space at the edges may be in it or not.
    needed = {-1.0 - place for place, part in enumerate(parts) if part.strip()}
    marks = any(mark in text for mark in "\u2581\u0120\u010a\ufffd")
    assert marks or needed <= set(values)


@pytest.mark.parametrize("token", ["<a", "<a>", "a>", "\ufffd", " "])
def test_long_replies_take_linear_time(token: str) -> None:
    long = [token * 10, "\ufffd"] * 20_000
    assert read_logprobs(entries(*long), text="b" * 400_000) == (None, None)
