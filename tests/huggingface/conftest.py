"""Leaves files that import torch uncollected where only fast tests are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

_FAST = "test_settings.py"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore all tests but those of settings: importing torch takes five seconds."""
    is_slow = collection_path.is_file() and collection_path.name != _FAST
    return True if is_slow and config.option.markexpr == "not slow" else None
