"""The switch that turns every guard of the process into its bare model."""

from __future__ import annotations

import logging
import os

__all__ = ["DISABLED_VARIABLE", "disabled"]

logger = logging.getLogger(__name__)

DISABLED_VARIABLE = "SNNE_GUARD_DISABLED"
"""Environment variable that turns every guard of the process into its bare model."""


def disabled() -> bool:
    """Return whether the guards of this process are switched off, and say so once."""
    off = os.environ.get(DISABLED_VARIABLE, "") not in {"", "0", "false", "False"}
    if off and not _warned:
        _warned.append(True)
        logger.warning("%s is set: answers are not guarded", DISABLED_VARIABLE)
    return off


_warned: list[bool] = []
