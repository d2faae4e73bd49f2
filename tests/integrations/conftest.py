"""Fixtures for the adapters' tests."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress

import pytest

from snne_guard import MissingExtraError

# Before MLflow reads it: tests send nothing to anybody.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

# Full MLflow warns of its own code when it is first imported; its light client lacks
# this module.
with warnings.catch_warnings(), suppress(ImportError):
    warnings.simplefilter("ignore")
    importlib.import_module("mlflow.pyfunc")


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Assert that an adapter without its package names the extra that brings it."""

    def check(package: str, adapter: str, *, extra: str) -> None:
        for name in [*sys.modules]:
            if name == package or name.startswith(f"{package}."):
                monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setitem(sys.modules, package, None)
        module = f"snne_guard_integrations.{adapter}"
        monkeypatch.delitem(sys.modules, module, raising=False)
        with pytest.raises(MissingExtraError, match=rf"snne-guard\[{extra}\]") as found:
            importlib.import_module(module)
        assert found.value.extra == extra

    return check
