"""Runs a test once with each driver."""

from __future__ import annotations

import pytest

from tests.drivers.support import Run, run_in_tasks, run_in_threads


@pytest.fixture(params=[run_in_threads, run_in_tasks], ids=["threads", "tasks"])
def run(request: pytest.FixtureRequest) -> Run:
    driver: Run = request.param
    return driver
