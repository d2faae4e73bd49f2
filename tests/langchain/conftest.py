"""Lets a guard fail a conformance test only where the bare model fails it too."""

from collections.abc import Generator
from typing import Any

import pytest

FAILED_BARE = pytest.StashKey[set[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the failures that a suite's ``cannot`` explains into expected ones.

    A suite names in ``cannot`` what its server is known not to do. There the bare
    model may fail, and where it has failed the guard may fail as well.
    """
    report = yield
    suite = getattr(item, "cls", None)
    cannot: dict[str, str] = getattr(suite, "cannot", {})
    reason = cannot.get(getattr(item, "originalname", item.name))
    if call.when != "call" or not report.failed or reason is None:
        return report
    failed = item.session.stash.setdefault(FAILED_BARE, set())
    if getattr(suite, "is_bare", False):
        failed.add(item.name)
    if item.name in failed:
        report.outcome = "skipped"
        report.wasxfail = f"{reason}; the bare ChatOpenAI fails too"
    return report
