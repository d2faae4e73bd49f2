"""What the tests of adapters share: the tool that one needs, or a skip."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.browsing import OPTIONS
from tests.support.tracing_servers import (
    TracingServer,
    mlflow_server,
    phoenix_command,
    phoenix_server,
)

Needs = Callable[[str], Any]

# Before MLflow reads it: tests send nothing to anybody.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"


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


@pytest.fixture(scope="session")
def mlflow_client(needs: Needs) -> Any:
    """The module ``mlflow``, with what full MLflow imports when it first sends."""
    module = needs("mlflow")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of its own code
        with contextlib.suppress(ImportError):
            import_module("mlflow.pyfunc")
    return module


@pytest.fixture(scope="session")
def mlflow_at(
    needs: Needs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TracingServer]:
    """A real MLflow server, started once."""
    needs("alembic")  # which comes with MLflow's server, and not with its clients
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture(scope="session")
def phoenix_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracingServer]:
    """A real Phoenix server, started once."""
    command = phoenix_command()
    if command is None:
        assert os.environ.get("SNNE_GUARD_REQUIRE_INTEGRATIONS") != "1"
        pytest.skip("there is no Phoenix; make test-integrations has it")
    with phoenix_server(tmp_path_factory.mktemp("phoenix"), command) as server:
        yield server


@pytest.fixture
def browser(needs: Needs, tmp_path: Path) -> Iterator[Any]:
    """A headless Chromium, steered by selenium."""
    webdriver = needs("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no Chromium with its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    for option in (*OPTIONS, profile, "--window-size=1400,800"):
        options.add_argument(option)
    service = needs("selenium.webdriver.chrome.service").Service(driver)
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()
