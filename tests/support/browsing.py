"""What the tests of web pages share: how a browser is started, what is kept of it."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

__all__ = ["OPTIONS", "keep"]

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


def keep(browser: Any, name: str, *, at_most: int = 150_000, **clip: int) -> None:
    """Keep a picture of a part of the page, where one is wanted.

    ``SNNE_GUARD_SCREENSHOTS=docs/images`` keeps those that the documentation shows.
    """
    if folder := os.environ.get("SNNE_GUARD_SCREENSHOTS"):
        shot = browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": {"scale": 1, **clip}}
        )
        picture = base64.b64decode(shot["data"])
        assert len(picture) < at_most
        (Path(__file__).parents[2] / folder / f"{name}.png").write_bytes(picture)
