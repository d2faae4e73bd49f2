"""The other readings by name: where the paper, its code and its sources differ."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.readings.graphs import GRAPHS
from snne_guard.scorers.readings.neighbours import NEIGHBOURS
from snne_guard.scorers.readings.white_box import WHITE_BOX

__all__ = ["READINGS"]

READINGS: Mapping[str, FunctionMethod] = MappingProxyType(
    {method.name: method for method in (*NEIGHBOURS, *GRAPHS, *WHITE_BOX)}
)
"""The readings that ``METHODS`` does not take, by the name that a guard or ``score``
takes: for comparison with the paper, its code and its sources, not for use."""
