"""What the tests of adapters share: the tool that one needs, or a skip."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

Needs = Callable[[str], Any]


@pytest.fixture(scope="session")
def needs() -> Needs:
    """Return a function that imports a package, or skips where it is not installed.

    ``SNNE_GUARD_REQUIRE_INTEGRATIONS=1``, which ``make test-integrations`` sets, fails
    instead.
    """

    def wanted(module: str) -> Any:
        try:
            return import_module(module)
        except ImportError as error:
            if os.environ.get("SNNE_GUARD_REQUIRE_INTEGRATIONS") == "1":
                raise
            pytest.skip(f"{error}; make test-integrations has it")

    return wanted
