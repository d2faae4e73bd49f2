"""What the tests of sampling share."""

from __future__ import annotations

import pytest
from tenacity import RetryCallState

from snne_guard.sampling import retry


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait no longer than is asked for before a request is sent again."""

    def none(_state: RetryCallState) -> float:
        return 0.0

    monkeypatch.setattr(retry, "_jitter", none)
