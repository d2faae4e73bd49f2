"""The picture of errors among accepted answers, in characters."""

from __future__ import annotations

import io

from rich.console import Console

from snne_guard.cli._calibration_view import RiskPicture

CURVE = [(0.2, 0.0), (0.6, 0.1), (1.0, 0.4)]


def drawn(picture: RiskPicture, *, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    Console(file=stream, width=100, color_system=None).print(picture)
    stream.flush()
    return [line.rstrip() for line in raw.getvalue().decode(encoding).splitlines()]


def test_points_lie_where_they_belong() -> None:
    lines = drawn(RiskPicture(curve=CURVE, chosen=(0.6, 0.1), level=0.2))
    assert lines[0] == "errors among accepted"
    assert lines[1].startswith("   40 %")
    rows = lines[1:12]
    assert [line.index("•") for line in rows if "•" in line] == [63, 19]
    [chosen] = [number for number, line in enumerate(rows) if "◆" in line]
    [level] = [number for number, line in enumerate(rows) if "┄" in line]
    # From the top: 0.4, so 0.1 is three quarters down and 0.2 a half.
    assert (chosen, level) == (8, 5)
    assert lines[-1].endswith("◆ chosen   ┄┄ asked for: 20 %")


def test_without_unicode_and_without_a_choice() -> None:
    lines = drawn(RiskPicture(curve=CURVE, chosen=None, level=None), encoding="ascii")
    assert lines[-1].split() == ["0", "%", "100", "%", "accepted"]  # nothing to explain
    assert sum(line.count("*") for line in lines) == 3
    assert all(line.isascii() for line in lines)


def test_no_error_at_all_has_an_axis() -> None:
    lines = drawn(RiskPicture(curve=[(1.0, 0.0)], chosen=(1.0, 0.0), level=None))
    assert lines[1].startswith("    5 %")
    assert "◆" in lines[11]
