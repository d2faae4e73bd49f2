"""What the tests of assessment share."""

from __future__ import annotations

import pytest

from snne_guard.assess import observe


@pytest.fixture
def patient_observers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for observers as long as a busy machine takes, and check often."""
    monkeypatch.setattr(observe, "_FLUSH_SECONDS", 60.0)
    monkeypatch.setattr(observe, "_IDLE_SECONDS", 0.01)
