"""Marks on uncertain parts, in every form."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import Span, render_marks, score_spans
from snne_guard.errors import ConfigurationError, InputError

TEXT = "It is <oak>.\n\n- tall\x1b[2J\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx\n```"


def marked(text: str, form: Any, *, threshold: Any = 0.5, u: float = 0.9) -> str:
    parts = score_spans(text, ["nothing"])
    spans = [Span(start=s.start, end=s.end, uncertainty=u, supported=0) for s in parts]
    return render_marks(text, spans, threshold=threshold, form=form)


def test_plain_marks_break_no_table_and_no_code() -> None:
    assert marked(TEXT, "plain") == (
        "It is <oak>. [?]\n\n- tall\x1b[2J [?]\n\n| a | b [?] |\n|---|---|\n"
        "| 1 | 2 [?] |\n\n```\nx\n```\n[?]"
    )
    assert marked("Oak.", "markdown") == r"Oak. \[?\]"


def test_html_is_escaped() -> None:
    text, escaped = 'A <b> & "c".', "A &lt;b&gt; &amp; &quot;c&quot;."
    shown = marked(text, "html")
    assert shown == f'<mark title="uncertainty 0.90">{escaped}</mark>'
    assert marked(text, "html", u=0.1) == escaped


def test_a_terminal_is_not_steered() -> None:
    shown = marked("tall\x1b[2J", "terminal")
    assert shown == "\x1b[30;43mtall␛[2J\x1b[0m"
    assert marked("a\nb", "terminal") == "\x1b[30;43ma\x1b[0m\n\x1b[30;43mb\x1b[0m"


def test_up_to_the_threshold_nothing_is_marked() -> None:
    assert marked("Oak.", "plain", threshold=0.9) == "Oak."
    assert marked("Oak.", "plain", threshold=0.8) == "Oak. [?]"
    assert marked("Oak.", "plain", threshold=-1.0, u=0.0) == "Oak. [?]"


def test_what_makes_no_sense_is_refused() -> None:
    span = Span(start=0, end=9, uncertainty=0.5, supported=0)
    with pytest.raises(InputError, match="spans of this text"):
        render_marks("Oak.", [span], threshold=0.1)
    with pytest.raises(ConfigurationError):
        marked("Oak.", "pdf")
