"""The folder of recorded answers of real models; tests that need it skip without it."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["SHARED"]

SHARED = Path(
    os.environ.get("SNNE_GUARD_SHARED")
    or Path(__file__).resolve().parents[2] / ".." / "shared"
)
