"""The page about a calibration as a person sees it, on a screen and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snne_guard.evaluation.calibrating.calibrate import run_calibration
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.evaluation.reporting.calibration import calibration_html
from tests.support.browsing import ask, show
from tests.support.calibrating import recordings

STYLE = "getComputedStyle(document.querySelector('{element}')).{of}"


def page(path: Path, *, count: int = 300) -> Path:
    settings = {"model": "a-model-with-a-very-long-name" * 8, "temperature": 1.0}
    run = run_calibration(
        recordings(count, settings=settings), Promise(error_rate=0.15)
    )
    html = calibration_html(run, note="n" * 300)
    path.write_text(html, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 375, 320])
def test_it_is_no_wider_than_the_screen(
    browser: Any, tmp_path: Path, width: int
) -> None:
    show(browser, page(tmp_path / "c.html"), width=width, scheme="light")
    assert ask(browser, "document.documentElement.scrollWidth") == width
    assert browser.get_log("browser") == []
    assert ask(browser, "document.title").startswith("Calibration")


def test_light_and_dark_differ_in_page_and_charts(browser: Any, tmp_path: Path) -> None:
    path, colours = page(tmp_path / "c.html"), {}
    for scheme in ("light", "dark"):
        show(browser, path, width=1280, scheme=scheme)
        colours[scheme] = [
            ask(browser, STYLE.format(element=element, of=of))
            for element, of in (
                ("body", "backgroundColor"),
                ("body", "color"),
                ("figure svg text", "fill"),
                (".legend line", "stroke"),
                ("figcaption", "color"),
            )
        ]
    pairs = zip(colours["light"], colours["dark"], strict=True)
    assert all(light != dark for light, dark in pairs)


@pytest.mark.parametrize(
    ("count", "told", "legend"),
    [
        (300, "lies below what was asked for.", ["chosen threshold"]),
        (20, "may be so by chance.", []),
    ],
)
def test_its_chart_says_what_is_in_it(
    browser: Any, tmp_path: Path, count: int, told: str, legend: list[str]
) -> None:
    show(browser, page(tmp_path / "c.html", count=count), width=375, scheme="dark")
    [first, *_] = browser.find_elements("css selector", "figure")
    assert first.find_element("css selector", "figcaption").text.endswith(told)
    items = [item.text for item in first.find_elements("css selector", "li")]
    assert items == [*legend, "error among accepted"]
    drawn = first.find_element("css selector", "svg").size
    assert 250 < drawn["width"] <= 375
