"""Whether the Hugging Face Hub can be reached, found out once and not file by file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

__all__ = ["from_hub"]

_TRIES = 2
_PAUSE = 1.0
"""Seconds before it is tried once more, for a network that has just hiccuped."""


def from_hub(name: str, /, *, revision: str | None = None) -> dict[str, Any]:
    """Return what tells transformers not to ask the Hub, empty where it answers.

    transformers tries six times for each file that it has not kept, half a minute each,
    where there is no network: it is asked once here, and then it is files that are kept
    or none.

    Args:
        name: Of a model on the Hub, or the path of a folder, for which nobody is asked.
        revision: Branch, tag or commit, None for the main one.

    Returns:
        Options of ``from_pretrained``.
    """
    if Path(name).exists():
        return {}
    for left in reversed(range(_TRIES)):
        answers = _answers(name, revision)
        if answers is not None:
            return {} if answers else {"local_files_only": True}
        if left:
            time.sleep(_PAUSE)
    return {"local_files_only": True}


def _answers(name: str, revision: str | None) -> bool | None:
    """Return whether the Hub answers, None where it might at another try."""
    import httpx
    import huggingface_hub
    from huggingface_hub.errors import OfflineModeIsEnabled

    hub: Any = huggingface_hub
    try:
        # Without a token: that it refuses is an answer too.
        hub.get_hf_file_metadata(hub.hf_hub_url(name, "config.json", revision=revision))
    except (OfflineModeIsEnabled, httpx.TimeoutException):
        return False
    except httpx.TransportError:
        return None
    except Exception:  # noqa: BLE001 - transformers says it better
        return True
    return True
