"""Fixtures for the adapters' tests."""

from __future__ import annotations

import importlib
import os
import warnings
from contextlib import suppress

# Before MLflow reads it: tests send nothing to anybody.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

# Full MLflow warns of its own code when it is first imported; its light client lacks
# this module.
with warnings.catch_warnings(), suppress(ImportError):
    warnings.simplefilter("ignore")
    importlib.import_module("mlflow.pyfunc")
