"""The live page in a real browser: Chromium, steered through its driver over HTTP."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from snne_guard.cost import Cost
from snne_guard.server.metrics import Metrics, live_routes
from snne_guard.types import Assessment, Field, Reply, Span
from tests.support.asgi import free_port, listening

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>alert(1)</script>"
RTL = "\u202e\u2067ما هي عاصمة فرنسا؟"  # noqa: RUF001
UNKNOWN = "\u2013"
TABLE = "document.querySelector('.scroll')"


def until(check: Callable[[], Any], *, seconds: float = 20.0) -> Any:
    """Wait for a true value and return it."""
    end = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
    return value


@contextmanager
def served(metrics: Metrics | None, port: int) -> Iterator[None]:
    """Serve the page on a port; without metrics a server that knows no page."""
    app = Starlette(routes=live_routes(metrics) if metrics else [])
    with listening(app, port=port):
        yield
        if metrics:
            metrics.closed = True


class Browser:
    """A session of the WebDriver protocol, as far as these tests need it."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def post(self, command: str, **body: Any) -> Any:
        reply = self._http.post(command, json=body).json()["value"]
        assert not (isinstance(reply, dict) and "error" in reply), reply
        return reply

    def cdp(self, command: str, **params: Any) -> Any:
        return self.post("goog/cdp/execute", cmd=command, params=params)

    def run(self, script: str) -> Any:
        return self.post("execute/sync", script=script, args=[])

    def ask(self, expression: str) -> Any:
        return self.run(f"return {expression}")

    def shows(self, text: str) -> None:
        until(lambda: text in self.ask("document.body.innerText"))

    def press(self, key: str) -> None:
        keys = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self.post("actions", actions=[{"type": "key", "id": "keys", "actions": keys}])

    def rows(self) -> list[list[str]]:
        found: list[list[str]] = self.ask(
            "[...document.querySelectorAll('tbody tr:first-child')]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        return found

    def console(self) -> list[str]:
        return [each["message"] for each in self.post("se/log", type="browser")]

    def open(self, url: str, *, width: int = 1280, **media: str) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        self.cdp("Emulation.setDeviceMetricsOverride", **size, mobile=width < 600)
        features = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in media.items()
        ]
        self.cdp("Emulation.setEmulatedMedia", features=features)
        self.post("url", url=url)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no Chromium with its driver")
    port = free_port()
    profile = tmp_path_factory.mktemp("profile")
    args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    args += ["--disable-background-networking", f"--user-data-dir={profile}"]
    options = {"binary": chromium, "args": args}
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    with subprocess.Popen(  # noqa: S603 - the driver that is installed here
        [driver, f"--port={port}"], stdout=subprocess.DEVNULL
    ) as run:
        try:
            with httpx.Client(timeout=60) as http:
                base = f"http://127.0.0.1:{port}/session"
                until(lambda: _answers(http, base.replace("session", "status")))
                body = {"capabilities": {"alwaysMatch": wanted}}
                made = http.post(base, json=body).json()["value"]
                http.base_url = f"{base}/{made['sessionId']}/"
                yield Browser(http)
                http.delete(str(http.base_url).rstrip("/"))
        finally:
            run.terminate()


def _answers(http: httpx.Client, url: str) -> bool:
    try:
        return http.get(url).is_success
    except httpx.TransportError:
        return False


def assessment(number: int, **fields: Any) -> Assessment:
    usual: dict[str, Any] = {
        "id": f"snne-{number:06x}",
        "answer": Reply(text="Paris"),
        "question": "Capital of France?",
        "uncertainty": 0.2,
        "threshold": 0.35,
        "decision": "accept",
        "cost": Cost(
            prompt_tokens=812, completion_tokens=97, seconds=0.83, money=0.00031
        ),
    }
    return Assessment(**{**usual, **fields})


def count(metrics: Metrics, many: int) -> None:
    for number in range(many):
        metrics.count("default", assessment(number))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(show_texts=True)


@pytest.fixture
def url(metrics: Metrics) -> Iterator[str]:
    port = free_port()
    with served(metrics, port):
        yield f"http://127.0.0.1:{port}/snne/live"


def test_it_shows_the_calls_as_numbers(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    browser.open(url)
    browser.shows("No calls yet.")
    browser.shows("no threshold is set")
    refused = {"uncertainty": 0.45, "decision": "refuse", "reasons": ("mixed_models",)}
    metrics.count("strict", assessment(3, **refused))
    unknown = {"uncertainty": None, "threshold": None, "decision": None}
    metrics.count("other", assessment(4, **unknown, cost=Cost()))
    until(lambda: len(browser.rows()) == 2)
    second, first = browser.rows()
    told = ["0.450", "0.350", UNKNOWN, "0.83", "812", "97", "0.00031", "strict"]
    assert first[2:] == [*told, "mixed_models", "snne-000003"]
    dashes = ["measured", *[UNKNOWN] * 3, "0.00", "0", "0", UNKNOWN, "other", ""]
    assert second[1:] == [*dashes, "snne-000004"]
    for text in ("50.0%", "0.00 / 0.83", "refuse 1", "accepted up to: strict 0.350"):
        browser.shows(text)
    minutes = browser.ask("document.getElementById('minutes').ariaLabel")
    assert "1 refuse" in minutes
    bins = browser.ask("document.getElementById('uncertainty').ariaLabel")
    assert "0, 0, 0, 0, 1, 0, 0, 0, 0, 0;" in bins
    marks = "document.querySelectorAll('#uncertainty .mark').length"
    assert browser.ask(marks) == 1
    assert browser.console() == []


def test_a_fresh_page_knows_the_thresholds_and_failures_are_told(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    metrics.thresholds = {"standard": 0.4, "strict": 0.2}
    browser.open(url)
    browser.shows("accepted up to: standard 0.400, strict 0.200")
    failed = {"decision": None, "answer": None, "uncertainty": None}
    metrics.count("strict", assessment(1, **failed, reasons=("answer_failed",)))
    until(lambda: len(browser.rows()) == 1)
    assert browser.rows()[0][1] == "failed"
    browser.shows("failed 1")
    assert browser.console() == []


def test_nothing_else_is_loaded_or_runs(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.shows("live")
    assert (
        browser.ask(
            "performance.getEntriesByType('resource').map((each) => each.name)"
            f".filter((name) => name !== '{url.replace('live', 'events')}')"
        )
        == []
    )
    browser.run(
        "const planted = document.createElement('script');"
        "planted.textContent = \"document.title = 'taken'\";"
        "document.body.append(planted)"
    )
    assert browser.ask("document.title") == "snne-guard live"
    [refused] = browser.console()
    assert "Content Security Policy" in refused


def test_light_and_dark_on_a_screen_and_on_a_phone(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    count(metrics, 120)
    last = [f"snne-{number:06x}" for number in range(119, 19, -1)]
    backgrounds = set()
    for width in (1280, 360):
        for scheme in ("light", "dark"):
            browser.open(url, width=width, color_scheme=scheme)
            until(lambda: [row[11] for row in browser.rows()] == last)
            assert browser.ask("document.documentElement.scrollWidth") == width
            scrolls = browser.ask(f"{TABLE}.scrollWidth > {TABLE}.clientWidth")
            assert scrolls == (width == 360)
            backgrounds.add(
                (scheme, browser.ask("getComputedStyle(document.body).backgroundColor"))
            )
    assert len(backgrounds) == len(dict(backgrounds).values()) == 2
    assert browser.console() == []


def test_hostile_texts_are_shown_and_do_nothing(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    for text, answer in ((HOSTILE, "x" * 1_000_000), (RTL, RTL)):
        drawn: Any = (Reply(text=HOSTILE), Reply(text=RTL))
        given: Any = {"id": text, "question": text, "reasons": (HOSTILE, RTL)}
        given["samples"] = drawn
        metrics.count(HOSTILE, assessment(1, answer=Reply(text=answer), **given))
    metrics.count(HOSTILE, assessment(3, question=None, answer=None))
    browser.open(url, width=360)
    until(lambda: len(browser.rows()) == 3)
    assert browser.rows()[2][9:] == [HOSTILE, f"{HOSTILE}, {RTL}", HOSTILE]
    details = "[...document.querySelectorAll('details')]"
    browser.run(f"{details}.forEach((each) => {{ each.open = true }})")
    shown = browser.ask(f"{details}.map((each) => each.textContent)")
    assert shown[0] == "no questionquestionnoneanswernone"
    assert shown[1] == f"{RTL}question{RTL}answer{RTL}sample 1{HOSTILE}sample 2{RTL}"
    assert f"question{HOSTILE}answerxxx" in shown[2]
    assert browser.ask("document.querySelector('main img, main script')") is None
    assert browser.ask("document.title") == "snne-guard live"
    assert browser.ask("document.documentElement.scrollWidth") == 360
    assert browser.console() == []


def test_uncertain_sentences_are_shaded(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    answer = f"\U0001f333 It is oak. {HOSTILE} It is tall."
    start = answer.index("<")
    places = [(2, 12, 0.1), (start, start + len(HOSTILE), 0.9)]
    spans = [Span(start=a, end=b, uncertainty=u, supported=0) for a, b, u in places]
    given: Any = {"spans": tuple(spans), "reasons": ("x",)}
    metrics.count("default", assessment(1, answer=Reply(text=answer), **given))
    browser.open(url)
    until(lambda: len(browser.rows()) == 1)
    assert browser.rows()[0][10] == "x, 1 of 2 sentences uncertain"
    marks = "[...document.querySelectorAll('mark')].map((each) => each.textContent)"
    assert browser.ask(marks) == [HOSTILE]
    assert answer in browser.ask("document.querySelector('details').textContent")
    assert browser.console() == []


def test_uncertain_fields_are_named_by_their_path(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    paths = [("/city", 0.1), (f"/{HOSTILE[:60]}", 0.9)]
    fields = tuple(Field(path=p, uncertainty=u, supported=0) for p, u in paths)
    metrics.count("default", assessment(1, fields=fields, reasons=("x",)))
    browser.open(url)
    until(lambda: len(browser.rows()) == 1)
    shown = f"x, 1 of 2 fields uncertain, /{HOSTILE[:60]}"
    assert browser.rows()[0][10] == shown
    assert browser.ask("document.querySelector('main img, main script')") is None
    assert browser.console() == []


def test_both_numbers_are_shown_and_what_no_document_says(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    answer = "It is oak. Ida made it."
    spans = (
        Span(start=0, end=10, uncertainty=0.1, supported=4, grounded=1.0),
        Span(
            start=11,
            end=23,
            uncertainty=0.1,
            supported=4,
            grounded=0.2,
            missing=((11, 14),),
        ),
    )
    given: Any = {"spans": spans, "grounded": 0.2, "min_grounded": 0.5}
    metrics.count("default", assessment(1, answer=Reply(text=answer), **given))
    browser.open(url)
    until(lambda: len(browser.rows()) == 1)
    assert browser.rows()[0][2:5] == ["0.200", "0.350", "0.20"]
    notes = "1 of 2 sentences uncertain, names and numbers in no document: 1"
    assert browser.rows()[0][10] == notes
    marks = "[...document.querySelectorAll('mark')].map((each) => each.textContent)"
    assert browser.ask(marks) == ["Ida made it."]
    assert browser.console() == []


def test_it_goes_on_when_the_server_comes_back(browser: Browser) -> None:
    port = free_port()
    before = Metrics()
    count(before, 5)
    with served(before, port):
        browser.open(f"http://127.0.0.1:{port}/snne/live")
        until(lambda: len(browser.rows()) == 5)
    browser.shows("connection lost, trying again")
    with served(None, port):  # as a proxy does whose server is not there
        time.sleep(4)
    assert len(browser.rows()) == 5
    after = Metrics()
    count(after, 2)
    with served(after, port):
        until(lambda: len(browser.rows()) == 2)
        assert browser.ask("document.getElementById('state').textContent") == "live"


def test_everything_is_reached_by_keyboard(
    browser: Browser, metrics: Metrics, url: str
) -> None:
    count(metrics, 1)
    browser.open(url, width=360)
    until(lambda: len(browser.rows()) == 1)
    tab, enter = "\ue004", "\ue007"
    reached = []
    for _ in range(3):
        browser.press(tab)
        reached.append(browser.ask("document.activeElement.textContent.trim()")[:18])
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert browser.ask(outline) == "solid"
    assert reached[0] == "To the last calls"
    assert reached[1].startswith("time")
    assert reached[2] == "Capital of France?"
    browser.press(enter)
    metrics.count("default", assessment(1))
    until(lambda: len(browser.rows()) == 2)  # what is open stays open
    assert browser.ask("document.activeElement.parentElement.open")
    browser.open(url, width=360)
    until(lambda: len(browser.rows()) == 2)  # before that, a key may get lost
    browser.press(tab)
    browser.press(enter)
    until(lambda: browser.ask("document.activeElement.id") == "calls")
