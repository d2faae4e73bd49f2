"""``snne-guard drift``: compares new recordings with those of a calibration."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from numpy.typing import ArrayLike
from typer import Argument, Option

from snne_guard.cli.console import progress, tell_left_out
from snne_guard.decision import Calibration
from snne_guard.decision import drift as find_drift
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.decision_log import is_log, logged_uncertainty
from snne_guard.evaluation.recorded_calls import PLAIN
from snne_guard.evaluation.recordings import read_recordings
from snne_guard.evaluation.replaying import score_recordings

_DRIFTED = 3
"""Exit status where the uncertainties have changed."""


def drift(
    calibration: Annotated[Path, Argument(help="What calibrate wrote.")],
    recording: Annotated[Path, Argument(help="New answers; they need no grades.")],
    *,
    policy: Annotated[
        str | None,
        Option(help="RECORDING is a decision log: take this policy's calls."),
    ] = None,
) -> None:
    """Test whether the uncertainty has changed since the calibration.

    It notices questions that have become easier or harder. It cannot notice a model
    that errs more often at the same uncertainty.

    Exit status: 0 no change was found; 2 wrong usage, or a recording that was drawn
    with other settings; 3 the uncertainty has changed.
    """
    stored = Calibration.load(calibration)
    left_out = Counter[str]()
    if policy is None and is_log(recording):
        msg = f"{recording} is a decision log: name one of its policies by --policy"
        raise ConfigurationError(msg)
    if policy is None:
        uncertainty, unscored = _scored(stored, recording)
        left_out["answers without a score"] = unscored
    else:
        uncertainty = logged_uncertainty(
            recording, stored, policy=policy, left_out=left_out
        )
    report = find_drift(stored, uncertainty)
    typer.echo(report.statement)
    tell_left_out(left_out)
    if report.drifted:
        raise typer.Exit(_DRIFTED)


def _scored(stored: Calibration, recording: Path) -> tuple[ArrayLike, int]:
    """Return ``u`` of recorded answers, and how many have none."""
    as_made = stored.guard_options()
    as_made.pop("temperature", None)
    as_made["context_from"] = stored.settings.get("context_from") or "function"
    as_made["views"] = stored.settings.get("views") or [PLAIN]
    as_made["other_models"] = stored.settings.get("other_models") or []
    scores = score_recordings(
        progress(read_recordings(recording), what="scoring"),
        # A recording that names no model is taken to be of the calibration's.
        model=stored.settings.get("model"),
        **as_made,
    )
    stored.check(scores.settings)
    return scores.uncertainty, scores.unscored.total()
