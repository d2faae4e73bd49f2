"""``snne-guard audit``: what monitors have seen, and reports on what they picked."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from snne_guard.cli._console import note, one_line, reported_errors
from snne_guard.decision import SqliteStore
from snne_guard.decision.monitor_audits import Watched, report_in, watched_in
from snne_guard.errors import ConfigurationError, InputError

__all__ = ["audit"]

_STALE, _USAGE = 1, 2


def audit(
    store: Annotated[
        Path,
        typer.Argument(metavar="MONITOR.db", help="The file of a SqliteStore."),
    ],
    *,
    right: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="This answer is right; may be repeated."),
    ] = None,
    wrong: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="This answer is wrong; may be repeated."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one monitor a line.")
    ] = False,
) -> None:
    """Show what the monitors of a file have seen, and which answers wait for an audit.

    With --right and --wrong, report on such answers by their ids, which are in the
    metadata of each guarded answer. Report all that were picked, right and wrong
    alike. The same report again changes nothing.

    Exit status: 0 no calibration is stale; 1 one is; 2 wrong usage, a file that cannot
    be read, or an id that no monitor waits for.
    """
    verdicts = [(name, True) for name in right or ()]
    verdicts += [(name, False) for name in wrong or ()]
    status = 0
    with reported_errors():
        if both := set(right or ()) & set(wrong or ()):
            msg = f"both right and wrong: {', '.join(sorted(both))}"
            raise ConfigurationError(msg)
        store.stat()  # opening it would make one
        opened = SqliteStore(store)
        for name, correct in verdicts:
            try:
                report_in(opened, name, correct=correct)
            except InputError as error:
                note(str(error))
                status = _USAGE
        found = watched_in(opened)
    for each in found:
        typer.echo(_as_json(each) if as_json else _described(each))
    if not (found or as_json):
        note(f"no monitor has written to {store} yet")
    stale = any(each.status.state == "stale" for each in found)
    raise typer.Exit(status or (_STALE if stale else 0))


def _as_json(watched: Watched) -> str:
    return json.dumps(
        {
            "monitor": watched.key,
            **asdict(watched.status),
            "pending": watched.pending,
        }
    )


def _described(watched: Watched) -> str:
    status = watched.status
    since = "" if status.since is None else f" since {status.since}"
    seen = (
        f"answers: {status.n_scores} scored, {status.n_accepted} accepted, "
        f"{status.n_picked} picked for an audit"
    )
    reports = (
        f"{status.n_reported} reported, {status.n_wrong} of them wrong, "
        f"{status.n_pending} waiting"
    )
    wait = ("wait for --right or --wrong:",) if watched.pending else ()
    ids = (f"  {one_line(name)}" for name in watched.pending)
    told = (status.reason, seen, reports, *wait, *ids)
    lines = [f"{one_line(watched.key)}: {status.state}{since}", *told]
    return "\n  ".join(lines)
