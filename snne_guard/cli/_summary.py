"""What a run over many recordings adds up to, and how it is printed."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from snne_guard.types import Score

__all__ = ["Summary"]

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(slots=True, kw_only=True)
class Summary:
    """Counts, and the uncertainties as 8 bytes each.

    Attributes:
        rows: Lines that were read, the bad ones too.
        skipped: Lines that were no recording or could not be scored for its faults.
        unscored: Recordings without an uncertainty, such as those of one answer.
        uncertainties: ``u`` of each scored recording.
        methods: How often each method ran.
        reasons: How often each reason was given.
        decisions: How often each decision was taken, if there is a threshold.
    """

    rows: int = 0
    skipped: int = 0
    unscored: int = 0
    uncertainties: array[float] = field(default_factory=lambda: array("d"))
    methods: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    decisions: Counter[str] = field(default_factory=Counter[str])

    def add(self, score: Score, *, decision: str | None) -> None:
        """Count one recording."""
        self.reasons.update(score.reasons)
        if decision is not None:
            self.decisions[decision] += 1
        if score.uncertainty is None:
            self.unscored += 1
            return
        self.methods[score.method] += 1
        self.uncertainties.append(score.uncertainty)

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        lines = [
            f"rows         {self.rows}",
            f"scored       {len(self.uncertainties)}",
            f"unscored     {self.unscored}",
            f"skipped      {self.skipped}",
        ]
        if self.uncertainties:
            lines += self._uncertainty_lines()
        for title, counts in (
            ("methods", self.methods),
            ("reasons", self.reasons),
            ("decisions", self.decisions),
        ):
            if counts:
                told = ", ".join(f"{name} {n}" for name, n in counts.most_common())
                lines.append(f"{title:<12} {told}")
        return lines

    def _uncertainty_lines(self) -> list[str]:
        u = np.frombuffer(self.uncertainties, dtype=np.float64)
        quantiles = np.quantile(u, _QUANTILES)
        told = "  ".join(
            f"{share:.0%} {value:.4f}"
            for share, value in zip(_QUANTILES, quantiles, strict=True)
        )
        return [
            f"mean u       {u.mean():.4f}",
            f"median u     {np.median(u):.4f}",
            f"quantiles    {told}",
            f"u = 0        {(u == 0).mean():.1%}",
        ]
