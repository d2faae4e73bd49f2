"""All that a file of monitors knows, for whoever has the file and no guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snne_guard.decision.monitor_state import MonitorState
from snne_guard.decision.monitor_status import MonitorStatus, raise_alarm, status_of
from snne_guard.decision.sqlite_store import SqliteStore
from snne_guard.errors import InputError

__all__ = ["Watched", "report_in", "watched_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One monitor of a file.

    Attributes:
        key: Name of the monitor, and what marks its calibration.
        status: What it makes of what it has seen.
        pending: Ids that wait for a report, the oldest first.
    """

    key: str
    status: MonitorStatus
    pending: tuple[str, ...]


def watched_in(store: SqliteStore) -> tuple[Watched, ...]:
    """Return the monitors of a file, by their keys.

    Raises:
        MonitorStoreError: If the file or a state in it cannot be read.
    """
    found: list[Watched] = []
    for key in store.keys():  # noqa: SIM118 - a store is no mapping

        def look(state: MonitorState, key: str = key) -> None:
            status, pending = status_of(state), tuple(state.pending)
            found.append(Watched(key=key, status=status, pending=pending))

        _change(store, key, look)
    return tuple(found)


def report_in(store: SqliteStore, assessment_id: str, *, correct: bool) -> None:
    """Report on an answer, to the monitor of a file that has picked it.

    Args:
        store: The file.
        assessment_id: Id of the answer's assessment.
        correct: Whether the answer is right.

    Raises:
        InputError: If none waits for it, or it was reported otherwise before.
        MonitorStoreError: If the file or a state in it cannot be read or kept.
    """
    knowing: list[str] = []

    def report(state: MonitorState) -> None:
        if assessment_id in state.reported or assessment_id in state.pending:
            state.report(assessment_id, correct=correct)
            raise_alarm(state)
            knowing.append(assessment_id)

    for key in store.keys():  # noqa: SIM118 - a store is no mapping
        _change(store, key, report)
    if not knowing:
        msg = f"no monitor of {store.path} waits for a report on {assessment_id!r}"
        raise InputError(msg)


def _change(
    store: SqliteStore, key: str, change: Callable[[MonitorState], None]
) -> None:
    def in_text(text: str | None) -> str:
        state = MonitorState.from_text(text or "")
        change(state)
        return state.to_text()

    store.update(key, in_text)
