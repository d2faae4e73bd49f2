"""Limits that an evaluation must keep, for pipelines: a status and a JUnit file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from snne_guard.checks import check_number
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Evaluation
from snne_guard.evaluation.accepting import error_at
from snne_guard.evaluation.ranking import TITLES
from snne_guard.files import replace_file
from snne_guard.text import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One limit on one file: whether it is kept, and what was measured."""

    file: str
    limit: str
    kept: bool
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an evaluation must keep.

    Attributes:
        least: Metrics of the first method with the least value of each.
        max_error: Largest share of wrong answers among those accepted, None for any.
        coverage: The share of answers that are accepted.
    """

    least: dict[str, float]
    max_error: float | None
    coverage: float

    @classmethod
    def of(
        cls, fail_under: Sequence[str], max_error: float | None, coverage: float | None
    ) -> Limits:
        """Return the limits that options name.

        Raises:
            ConfigurationError: One makes no sense.
        """
        least: dict[str, float] = {}
        for text in fail_under:
            name, _, number = text.partition("=")
            try:
                least[name] = float(number)
            except ValueError:
                least[name] = math.nan
            if name not in TITLES or math.isnan(least[name]):
                names = ", ".join(TITLES)
                msg = f"expected --fail-under NAME=NUMBER, {names}, got {text!r}"
                raise ConfigurationError(msg)
        if max_error is not None:
            check_number(max_error, what="--max-error", least=0, below=1)
        elif coverage is not None:
            msg = "expected --max-error with --at-coverage"
            raise ConfigurationError(msg)
        share = 1.0 if coverage is None else coverage
        check_number(share, what="--at-coverage", above=0, most=1)
        return cls(least=least, max_error=max_error, coverage=share)

    def checked(self, evaluation: Evaluation) -> Iterator[Checked]:
        """Yield each limit; one of a figure that does not exist is not kept."""
        first, file = evaluation.rows[0], evaluation.name
        for name, least in self.least.items():
            value = first.metrics[name].value if name in first.metrics else math.nan
            limit = f"{TITLES[name]} of {first.name} at least {least:g}"
            yield Checked(
                file=file, limit=limit, kept=value >= least, found=f"it is {value:.3f}"
            )
        if self.max_error is not None:
            u, correct = evaluation.u, evaluation.correct
            wrong = math.nan
            if u is not None and correct is not None:
                wrong = error_at(u, correct, self.coverage)
            share = f"{self.coverage:.3g}"
            found = f"it is {wrong:.3f}"
            if math.isnan(wrong):
                found = "so many cannot be accepted, or none is right or wrong"
            yield Checked(
                file=file,
                limit=f"error at coverage {share} at most {self.max_error:g}",
                kept=wrong <= self.max_error,
                found=found,
            )


def write_junit(path: Path, checked: Sequence[Checked]) -> None:
    """Write the outcome of each limit as pipelines read it."""
    failures = sum(not each.kept for each in checked)
    counts = {"tests": str(len(checked)), "failures": str(failures)}
    suite = ET.Element("testsuite", {"name": "snne-guard evaluate", **counts})
    for each in checked:
        names = {"classname": printable(each.file), "name": printable(each.limit)}
        case = ET.SubElement(suite, "testcase", names)
        if not each.kept:
            ET.SubElement(case, "failure", {"message": printable(each.found)})
    with replace_file(path) as stream:
        stream.write(ET.tostring(suite, encoding="utf-8", xml_declaration=True))
