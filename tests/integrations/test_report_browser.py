"""The report of an evaluation as a person sees it, on a screen and on a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snne_guard.evaluation import evaluate, write_report
from tests.support.browsing import ask, keep, show
from tests.support.evaluated import evaluated_set, evaluation, hard_question
from tests.support.shared_folder import SHARED

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
TALL = 4000
"""Pixels of a screen on which all that is pictured can be seen."""
LONG = "a_very_long_name_of_a_method_" * 8


@pytest.fixture
def report(tmp_path: Path) -> Path:
    found = evaluated_set(n=60)
    odd = replace(
        hard_question(3, correct=False),
        id="x" * 300,
        question=f"{HOSTILE} {'y' * 400} ما هي عاصمة فرنسا؟",
        samples=(HOSTILE, "フランス" * 60),
    )
    found = replace(
        found,
        name=LONG,
        path=f"/{'deep/' * 60}file.jsonl",
        hardest=(odd, *found.hardest),
        warnings=(HOSTILE, "w" * 300),
        methods=(*found.methods, replace(found.methods[-1], name=LONG, why="z" * 300)),
    )
    path = tmp_path / "report.html"
    write_report(evaluation(found), path)
    return path


@pytest.mark.parametrize("width", [1280, 375, 320])
def test_only_boxes_of_tables_are_wider_than_the_screen(
    browser: Any, report: Path, width: int
) -> None:
    show(browser, report, width=width, scheme="light")
    assert ask(browser, "document.documentElement.scrollWidth") == width
    browser.execute_script(
        "document.querySelectorAll('details').forEach(each => { each.open = true })"
    )
    assert ask(browser, "document.documentElement.scrollWidth") == width
    if width < 1280:
        ranking = "document.querySelector('.ranking').parentElement"
        assert ask(browser, f"{ranking}.scrollWidth > {ranking}.clientWidth")
    assert browser.get_log("browser") == []
    assert ask(browser, "document.title").startswith("Evaluation")


def test_light_and_dark_differ_in_page_and_charts(browser: Any, report: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        show(browser, report, width=1280, scheme=scheme)
        colours[scheme] = [
            ask(browser, f"getComputedStyle(document.querySelector('{element}')).{of}")
            for element, of in (
                ("body", "backgroundColor"),
                ("body", "color"),
                ("figure svg text", "fill"),
                (".legend line", "stroke"),
            )
        ]
    pairs = zip(colours["light"], colours["dark"], strict=True)
    assert all(light != dark for light, dark in pairs)


def test_answers_unfold(browser: Any, report: Path) -> None:
    show(browser, report, width=375, scheme="dark")
    first = browser.find_element("css selector", ".question")
    answer = first.find_element("css selector", ".answers")
    assert not answer.is_displayed()
    first.find_element("css selector", "summary").click()
    assert answer.is_displayed()
    assert HOSTILE in answer.text


def test_every_chart_is_seen(browser: Any, report: Path) -> None:
    show(browser, report, width=375, scheme="light")
    sizes = ask(
        browser,
        "[...document.querySelectorAll('figure > svg')].map(each => "
        "[each.getBoundingClientRect().width, each.getBBox().width])",
    )
    assert len(sizes) == 8
    assert all(250 < width <= 375 and drawn > 250 for width, drawn in sizes)


def test_nothing_can_run_in_it(browser: Any, report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    planted = "<script>document.title = 'taken'</script></body>"
    report.write_text(text.replace("</body>", planted), encoding="utf-8")
    show(browser, report, width=375, scheme="light")
    assert ask(browser, "document.title").startswith("Evaluation")
    [refused] = browser.get_log("browser")
    assert "Content Security Policy" in refused["message"]


def test_it_can_be_printed(browser: Any, report: Path) -> None:
    show(browser, report, width=1280, scheme="dark")
    assert browser.print_page().startswith("JVBERi0")  # "%PDF-" in base64


def test_a_report_of_real_recordings_can_be_read(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = SHARED / "data"
    if not data.exists():
        pytest.skip(f"there are no recordings of real models in {data}")
    monkeypatch.chdir(data)
    path = tmp_path / "report.html"
    write_report(evaluate("generations_uqnlg_triviaqa.jsonl", methods="all"), path)
    for scheme in ("light", "dark"):
        show(browser, path, width=1280, scheme=scheme, height=TALL)
        y = place(browser, "#set-1", "top") - 24
        end = place(browser, "figure", "bottom") + 20
        keep(
            browser,
            f"report-{scheme}",
            at_most=250_000,
            x=0,
            y=y,
            width=1280,
            height=end - y,
            scale=1,
        )
    show(browser, path, width=375, scheme="light", height=TALL)
    assert ask(browser, "document.documentElement.scrollWidth") == 375
    y = place(browser, "#set-1-ranking", "top") - 16
    keep(browser, "report-phone", x=0, y=y, width=375, height=812)


def place(browser: Any, selector: str, side: str) -> int:
    """Return how far down a side of an element is."""
    box = f"document.querySelector('{selector}').getBoundingClientRect()"
    return int(ask(browser, f"Math.round({box}.{side})"))
