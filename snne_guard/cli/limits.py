"""Limits that an evaluation must keep, for pipelines: a status and a JUnit file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from snne_guard.checks import check_number
from snne_guard.cli.console import write
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Evaluation
from snne_guard.evaluation.accepting import error_at
from snne_guard.evaluation.ranking import TITLES
from snne_guard.text import printable


class Limit(NamedTuple):
    """A metric of the first method and its least value; or the largest error."""

    metric: str | None  # None: the error rate among accepted answers
    bound: float
    coverage: float = 1.0  # the share of answers that are accepted

    def checked(self, evaluation: Evaluation) -> Checked:
        """Check it; a limit of a figure that does not exist is not kept."""
        first, u, correct = evaluation.rows[0], evaluation.u, evaluation.correct
        value = math.nan
        if self.metric is not None:
            what = f"{TITLES[self.metric]} of {first.name} at least {self.bound:g}"
            if self.metric in first.metrics:
                value = first.metrics[self.metric].value
            kept = value >= self.bound
        else:
            what = f"error at coverage {self.coverage:g} at most {self.bound:g}"
            if u is not None and correct is not None:
                value = error_at(u, correct, self.coverage)
            kept = value <= self.bound
        found = "there is none" if math.isnan(value) else f"it is {value:.3f}"
        return Checked(printable(evaluation.name), printable(what), kept, found)


class Checked(NamedTuple):
    """A limit on a file, whether it is kept, and what was found."""

    file: str
    limit: str
    kept: bool
    found: str

    @property
    def in_words(self) -> str:
        """The outcome as one line."""
        word = "kept" if self.kept else "NOT KEPT"
        return f"{word}: {self.limit} in {self.file}; {self.found}"


def limits_of(
    fail_under: Sequence[str], max_error: float | None, at_coverage: float | None
) -> Iterator[Limit]:
    """Yield the limits that options name."""
    for text in fail_under:
        name, _, number = text.partition("=")
        bound = math.nan
        with suppress(ValueError):
            bound = float(number)
        if name not in TITLES or not math.isfinite(bound):
            names = ", ".join(TITLES)
            msg = f"expected --fail-under NAME=NUMBER, {names}, got {text!r}"
            raise ConfigurationError(msg)
        yield Limit(name, bound)
    if max_error is not None:
        share = 1.0 if at_coverage is None else at_coverage
        check_number(share, what="--at-coverage", above=0, most=1)
        check_number(max_error, what="--max-error", least=0, below=1)
        yield Limit(None, max_error, share)
    elif at_coverage is not None:
        msg = "expected --max-error with --at-coverage"
        raise ConfigurationError(msg)


def write_junit(path: Path, checked: Sequence[Checked]) -> None:
    """Write what came of each limit as pipelines read it."""
    failures = sum(not each.kept for each in checked)
    counts = {"tests": str(len(checked)), "failures": str(failures)}
    suite = ET.Element("testsuite", {"name": "snne-guard evaluate", **counts})
    for file, limit, kept, found in checked:
        case = ET.SubElement(suite, "testcase", {"classname": file, "name": limit})
        if not kept:
            ET.SubElement(case, "failure", {"message": found})
    text = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    write(path, text.decode())
