"""What the tests of web pages share: how a browser is started, what is kept of it."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path
from typing import Any

from PIL import Image

__all__ = ["OPTIONS", "ask", "keep", "show"]

_COLOURS = 256
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def keep(browser: Any, name: str, *, at_most: int = 150_000, **clip: float) -> None:
    """Keep a picture of a part of the page, where one is wanted.

    ``SNNE_GUARD_SCREENSHOTS=docs/images`` keeps those that the documentation shows.
    """
    if folder := os.environ.get("SNNE_GUARD_SCREENSHOTS"):
        shot = browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": {"scale": 1, **clip}}
        )
        with Image.open(io.BytesIO(base64.b64decode(shot["data"]))) as taken:
            small = io.BytesIO()
            taken.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE).save(
                small, "PNG", optimize=True
            )
        picture = small.getvalue()
        assert len(picture) < at_most
        (Path(__file__).parents[2] / folder / f"{name}.png").write_bytes(picture)


def show(
    browser: Any, path: Path, *, width: int, scheme: str, height: int = 900
) -> None:
    """Open a page as a device of some width does whose owner prefers a scheme."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": width < 600,
        },
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.get(path.as_uri())


def ask(browser: Any, expression: str) -> Any:
    """Return what an expression is in the page."""
    return browser.execute_script(f"return {expression}")
