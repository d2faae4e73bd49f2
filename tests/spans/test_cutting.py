"""Cutting an answer into parts: every script, every block, hostile text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.spans.cutting import cut

MARKDOWN = """# What it is

An oak. A tall
one (approx. 20 m).
> Quoted text.
> It goes on here.

1. First item. It has two.
2. *Second*

| tree | height |
|---|---|
| oak | 20 m |

```python
a = 1. + b

c = 2
```

[note]: https://example.com
<b>HTML</b>
Under
---
"""


def parts_of(text: str) -> list[str]:
    return [text[start:end] for start, end in cut(text)]


def test_markdown_is_cut_by_its_blocks() -> None:
    assert parts_of(MARKDOWN) == [
        "What it is",
        "An oak.",
        "A tall\none (approx. 20 m).",
        "Quoted text.",
        "It goes on here.",
        "First item.",
        "It has two.",
        "*Second*",
        "| tree | height |",
        "| oak | 20 m |",
        "```python\na = 1. + b\n\nc = 2\n```",
        "[note]: https://example.com\n<b>HTML</b>\nUnder",
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("...\n\n---\n", []),
        ("Dr. Frick lives in the U.S. today. She is 80.", 2),
        ("She said \u201cGo!\u201d He went.", 2),
        ("مرحبا بك. كيف حالك؟ أنا بخير.", 3),  # right to left
        ("你好。我是谁？好。", ["你好。", "我是谁？", "好。"]),  # noqa: RUF001 - Chinese
        ("हाँ। नहीं।", 2),
        ("One.\r\n\r\nTwo.\rThree", ["One.", "Two.", "Three"]),
        ("> " * 40 + "deep\n\nNext", ["deep", "Next"]),
        ("- a\n\n      code()\n", ["a", "code()"]),
    ],
)
def test_every_script_and_every_line_end(text: str, parts: Any) -> None:
    found = parts_of(text)
    assert len(found) == parts if isinstance(parts, int) else found == parts


@pytest.mark.parametrize(
    "text",
    [
        "Am 29. Juli begann es.| Es war heiß.",
        "Der 2. Band fehlt.| Er kam am 1. April.",
        "1. Mai ist frei.| Der 2. nicht.",
        "Vom 3. bis 5. Juni war Markt.| Danach nicht.",
        "Den 3. mars kom han.| Så gik han.",
        "Karl IV. starb 1378.| Er war alt.",
        "Ich bin 12.| Er ist 10.",
        "I am 12.| He is 10.",
        "He scored 4.| Then he left.",
        "Take 1. eggs and 2. milk.| Stir.",
        "Steps: 1. Mix.| 2. Bake.",
        "See Eq. (3) and Eqs. 4 to 6.| Vol. 2 has more.",
        "Abb. 5 zeigt es.| Das ist z. B. Gold.",
        "The answer is c.| Because of the tin.",
        "He chose b.| It was right.",
        "Option e.| Paris is none.",
        "He drank i.e. Tea.",
    ],
)
def test_numbers_and_letters_before_a_full_stop(text: str) -> None:
    assert parts_of(text.replace("|", "")) == text.split("| ")


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ("River: Inn|Length: 517 km", True),
        ("> **River**: Inn|> **Length**: 517 km", True),
        ("Facts|river: Inn|length: 517 km|It is cold.", True),
        ("名称:因河|长度: 517 公里", True),
        ("• oak|• elm", True),
        ("a) oak|b) elm", True),
        ("Oak Hall|Elm House", True),
        ("He said: go|and then: run.", False),
        ("The river flows by the|Stadt of Linz: slowly|it goes.", False),
        ("Roses are red,|Violets are blue", False),
    ],
)
def test_lines_without_bullets(text: str, cuts: bool) -> None:
    lines = text.replace("> ", "").split("|") if cuts else [text.replace("|", "\n")]
    assert parts_of(text.replace("|", "\n")) == lines


def test_a_text_without_a_full_stop_is_cut_at_spaces() -> None:
    parts = parts_of("word " * 1_000)
    assert max(map(len, parts)) <= 1_000
    assert " ".join(parts).split() == ["word"] * 1_000
    assert list(map(len, parts_of("a" * 2_500))) == [1_000, 1_000, 500]


MARKUP = st.sampled_from(
    [
        *("# ", "> ", "- ", "1. ", "```", "~~~\n", "|", "\n", "\r\n", "\n\n", "    "),
        *("\t", "|---|\n", "[x](y)", "[x]: y", "<b>", "**", "。", ". ", "\0", "\u2028"),
    ]
)


@given(st.lists(MARKUP | st.text(max_size=6), max_size=30).map("".join))
def test_parts_cover_all_words_in_order_and_never_overlap(text: str) -> None:
    done = 0
    left_out = ""
    for start, end in cut(text):
        assert done <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        left_out += text[done:start] + "\n"
        done = end
    left_out += text[done:]
    # But for the numbers of list items.
    assert not any(char.isalpha() for char in left_out)
