"""The reference vectors, where they are; tests that compare with them skip without."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from snne_guard.types import FloatArray
from tests.support.shared_folder import SHARED

__all__ = ["NEEDS_VECTORS", "nli_of", "vectors"]

VECTORS = SHARED / "reference" / "vectors.json"

NEEDS_VECTORS = pytest.mark.skipif(
    not VECTORS.is_file(), reason=f"no reference vectors at {VECTORS.name}"
)


@cache
def vectors() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(VECTORS.read_text(encoding="utf-8"))
    return loaded


def nli_of(case: dict[str, Any]) -> FloatArray:
    """Return the probabilities of a case, premise first."""
    table: FloatArray = np.array(case["nli_probs[c,n,e][premise i][hyp j]"])
    return table
