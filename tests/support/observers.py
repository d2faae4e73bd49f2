"""An observer for tests."""

from __future__ import annotations

from snne_guard.types import Assessment


class Watcher:
    """Keeps the assessments that it is told of."""

    def __init__(self) -> None:
        self.assessments: list[Assessment] = []

    def on_assessment(self, assessment: Assessment) -> None:
        self.assessments.append(assessment)

    @property
    def only(self) -> Assessment:
        """The assessment of the only call."""
        (assessment,) = self.assessments
        return assessment
