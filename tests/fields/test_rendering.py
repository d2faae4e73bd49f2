"""Fields as a table, in every form."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import Field, render_fields
from snne_guard.errors import ConfigurationError

ANSWER = {"a/b": '<b>"x"</b>\x1b[2J', "rows": [1, None]}


def field(path: str, u: float = 0.9) -> Field:
    return Field(path=path, uncertainty=u, supported=0)


def shown(path: str, form: Any, *, u: float = 0.9, answer: Any = ANSWER) -> str:
    return render_fields(answer, [field(path, u)], form=form)


def test_html_is_escaped() -> None:
    value = "&quot;&lt;b&gt;\\&quot;x\\&quot;&lt;/b&gt;"
    html = shown("/a~1b", "html")
    assert f"<td>/a~1b</td><td><mark>{value}" in html
    assert "<b>" not in html
    assert "\x1b" not in html
    assert "<mark>" not in shown("/a~1b", "html", u=0.1)
    assert "<td>&lt;img&gt;</td>" not in html
    key = render_fields({"<img>": 1}, [field("/<img>")], form="html")
    assert "<td>/&lt;img&gt;</td>" in key


@pytest.mark.parametrize("form", ["plain", "terminal", "markdown", "html"])
def test_no_control_character_gets_out(form: Any) -> None:
    answer = {"a\x1b[2J\n": "b\x9b2J\u202e\n", "c": "\ud800"}
    text = render_fields(answer, [field("/a\x1b[2J\n", 0), field("/c", 0)], form=form)
    assert not {"\x1b", "\x9b", "\u202e", "\ud800"} & {*text}
    assert (
        text.count("\n") == {"plain": 1, "terminal": 1, "markdown": 3, "html": 4}[form]
    )


def test_a_terminal_gets_a_background_for_what_is_uncertain() -> None:
    assert shown("/rows/0", "terminal") == "\x1b[30;43m/rows/0  1  0.90\x1b[0m"
    assert shown("/rows/0", "terminal", u=0.5) == "/rows/0  1  0.50"


def test_markdown_makes_one_row_of_any_text() -> None:
    answer = {"a|b": "`c` | [d](e) <img>\n# f"}
    *_, row = render_fields(answer, [field("/a|b")], form="markdown").split("\n")
    assert row == (r'| /a\|b | "\`c\` \| \[d\](e) \<img\>\\n\# f" | 0.90 \[?\] |')


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/rows/0", "1"),
        ("/rows/1", "null"),
        ("/rows/2", "(absent)"),
        ("/rows/-", "(absent)"),
        ("/c", "(absent)"),
        ("/rows/0/d", "(absent)"),
        ("", '{"a/b": "<b>\\"x\\"</b>\\u001b[2J", "rows": [1, null]}'),
    ],
)
def test_values_are_found_by_their_path(path: str, value: str) -> None:
    assert shown(path, "plain", u=0) == f"{path}  {value}  0.00"


def test_texts_of_json_are_read_and_nothing_else() -> None:
    assert shown("/a", "plain", u=0, answer='{"a": 1.50}') == '/a  "1.50"  0.00'
    assert shown("/a", "plain", u=0, answer="Paris") == "/a  (absent)  0.00"
    assert render_fields(ANSWER, []) == ""


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        shown("/a", "pdf")
    with pytest.raises(ConfigurationError):
        render_fields(ANSWER, [], threshold=2)
