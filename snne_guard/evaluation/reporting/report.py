"""The report of an evaluation: one HTML file that needs nothing but a browser."""

from __future__ import annotations

from pathlib import Path

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.results import Evaluation

__all__ = ["check_report_extra", "to_html", "write_report"]


def check_report_extra() -> None:
    """Check that the packages of a report are there, before an evaluation takes hours.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import matplotlib as mpl  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        needed = f"{error.name or 'jinja2'} (for the HTML report)"
        raise MissingExtraError(needed, extra="eval") from error


def to_html(evaluation: Evaluation) -> str:
    """Return a page that shows what an evaluation found.

    It is whole in itself: charts, colours and texts are in it, there is no script, and
    its content security policy lets a browser run and fetch nothing, whatever the
    recorded answers say.

    Args:
        evaluation: What was found.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.

    Example:
        >>> page = to_html(Evaluation(sets=(), version="0.1.0"))
        >>> page.startswith("<!doctype html>"), "<script" in page
        (True, False)
    """
    check_report_extra()
    from snne_guard.evaluation.reporting.page import page

    return page(evaluation)


def write_report(evaluation: Evaluation, path: Path | str) -> None:
    """Write the page of ``to_html`` into a file.

    Args:
        evaluation: What was found.
        path: The file; what it held before is gone.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
        OSError: The file cannot be written.
    """
    html = to_html(evaluation)
    Path(path).write_text(html, encoding="utf-8")
