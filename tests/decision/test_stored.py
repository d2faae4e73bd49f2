"""Dataclasses are read back only from fields of their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from snne_guard.decision.stored import read_fields
from snne_guard.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    counts: tuple[int, ...]
    limits: tuple[float | None, ...] = ()
    sure: bool = True


def test_lists_become_tuples() -> None:
    found = read_fields(Held, {"counts": [2, 5], "limits": [None, 1], "sure": False})
    assert found == Held(counts=(2, 5), limits=(None, 1), sure=False)
    assert isinstance(found.counts, tuple)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [2, 5.0]},
        {"counts": [2, True]},
        {"counts": "25"},
        {"limits": [None, "1"]},
        {"sure": 1},
    ],
)
def test_every_item_must_be_of_the_type(change: dict[str, Any]) -> None:
    stored: dict[str, Any] = {"counts": [2], "limits": [], "sure": True}
    assert read_fields(Held, stored) == Held(counts=(2,))
    with pytest.raises(InputError, match=f"another type of {next(iter(change))}"):
        read_fields(Held, stored | change)
