"""The live page in a real browser: Chromium, steered through its driver over HTTP."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from snne_guard.server.live import live_routes
from snne_guard.server.metrics import Metrics
from snne_guard.types import Assessment, Cost, Sample

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>alert(1)</script>"
RTL = "\u202e\u2067ما هي عاصمة فرنسا؟"
TABLE = "document.querySelector('.scroll')"


def until(check: Callable[[], Any], *, seconds: float = 20.0) -> Any:
    """Wait for a true value and return it."""
    end = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
    return value


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(metrics: Metrics, port: int, *, show_texts: bool = False) -> Iterator[None]:
    app = Starlette(routes=live_routes(metrics, show_texts=show_texts))
    config = uvicorn.Config(app, port=port, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    try:
        yield
    finally:
        metrics.close()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


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
            "[...document.querySelectorAll('#rows tr:not(.texts)')]"
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

    def keep(self, name: str) -> None:
        """Keep a picture where SNNE_GUARD_SCREENSHOTS names a folder for it."""
        if folder := os.environ.get("SNNE_GUARD_SCREENSHOTS"):
            picture = self.cdp("Page.captureScreenshot", captureBeyondViewport=True)
            Path(folder, f"{name}.png").write_bytes(base64.b64decode(picture["data"]))


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
    with subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL) as run:
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
    """Return one of many calls that look like real ones."""
    u = (number * 37 % 100) / 100 * (number * 53 % 10 / 10)
    usual: dict[str, Any] = {
        "id": f"snne-{number:06x}",
        "answer": Sample(text="Paris"),
        "question": "Capital of France?",
        "uncertainty": u,
        "threshold": 0.35,
        "decision": "accept" if u <= 0.35 else ("refuse", "fallback")[number % 2],
        "reasons": ("temperature_unset",) if number % 9 == 0 else (),
        "cost": Cost(
            prompt_tokens=812,
            completion_tokens=94 + number,
            seconds=0.4 + number % 13 / 7,
            money=0.00031,
        ),
    }
    return Assessment(**{**usual, **fields})


def count(metrics: Metrics, many: int) -> None:
    observer = metrics.observer("default")
    for number in range(many):
        observer.on_assessment(assessment(number))
