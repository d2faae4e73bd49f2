"""What the tests of assessment share."""

from __future__ import annotations

import pytest

from snne_guard.assess import observe


@pytest.fixture
def brief_observers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the threads of observers end as soon as there is nothing to tell."""
    monkeypatch.setattr(observe, "_IDLE_SECONDS", 0.01)
