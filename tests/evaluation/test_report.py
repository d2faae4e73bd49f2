from __future__ import annotations

import json
import re
import sys
from base64 import b64decode
from html.parser import HTMLParser
from importlib import import_module
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation import Evaluation, Grade, evaluate
from snne_guard.evaluation.report import to_html
from tests.evaluation.support import recording, recordings

HOSTILE = (
    '<script>alert(1)</script>"><img src=x onerror=alert(1)>&amp;'
    "{{ 7*7 }}</pre><!-- ]]> \x1b[2J \u202e $\\frac{1}{0}$ =cmd|' /C calc'!A0"
)
SHOWN = HOSTILE.replace("\x1b", "\u241b").replace("\u202e", "\ufffd")


class Page(HTMLParser):
    """Collects the tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def evaluation(**fields: Any) -> Evaluation:
    rng = np.random.default_rng(0)
    usual = {"question": "Who?", "main_answer": "a", "samples": ["a", "b"]}
    rows = [
        recording(
            **{
                **usual,
                "samples": ["a", "a" if rng.random() < 0.5 else f"b{number}"],
                **fields,
                "id": number,
                "label": int(rng.random() < 0.5),
            }
        )
        for number in range(30)
    ]
    return evaluate(rows, methods="snne,dse[exact],wsnne", draws=10, name="a set")


def test_the_page_has_the_figures() -> None:
    found = evaluation()
    page = Page(to_html([found]))
    for row in found.ranked:
        assert row.name in page.text
        assert f"{row.metrics['auroc'].value:.3f}" in page.text
    assert "30 of 30 questions" in page.text
    assert "wsnne[content_f1]: expected mean_logprobs" in page.text


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    page = Page(to_html([evaluation()]))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "base", "form"}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert "href" not in attributes
        source = attributes.get("src")
        assert source is None or source.startswith("data:image/svg+xml;base64,")
    policy = next(
        attributes["content"]
        for tag, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_page_and_json_have_no_text_of_a_question_or_an_answer() -> None:
    found = evaluation(question="hidden", main_answer="hidden")
    assert "hidden" not in to_html([found])
    assert "hidden" not in json.dumps(found.to_dict(), allow_nan=False)


def test_hostile_names_are_shown_and_do_nothing() -> None:
    rows = [recording(id=n, samples=["a", str(n)]) for n in range(9)]

    def grade(found: Any) -> list[Grade | None]:
        return [
            Grade(quality=1.0, correct=int(r.id) % 2, grader=HOSTILE) for r in found
        ]

    def compare(texts: Any, /, *, question: str | None = None) -> Any:
        del question
        return np.eye(len(texts))

    compare.__qualname__ = HOSTILE
    found = evaluate(
        rows,
        methods=["snne"],
        similarity=compare,
        grader=grade,
        draws=2,
        name=HOSTILE,
    )
    text = to_html([found])
    page = Page(text)
    assert page.text.count(SHOWN) >= 3
    assert not set("\x1b\u202e") & set(text)
    assert {tag for tag, _ in page.tags} == {
        tag for tag, _ in Page(to_html([evaluation()])).tags
    } - {"h3", "ul", "li"}
    [source] = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', text)
    root = ET.fromstring(b64decode(source))  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_answers_that_are_all_right_have_no_curve() -> None:
    found = evaluate(recordings()[:2], methods=["snne"], draws=2)
    page = Page(to_html([found]))
    assert "img" not in {tag for tag, _ in page.tags}
    assert "100.0\xa0% right" in page.text


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "snne_guard.evaluation.report")
    with pytest.raises(MissingExtraError, match=r"snne-guard\[eval\]"):
        import_module("snne_guard.evaluation.report")
