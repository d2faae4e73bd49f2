"""Which device a model runs on where nobody says."""

from __future__ import annotations

__all__ = ["best_device"]


def best_device() -> str:
    """Return the GPU if there is one, else the CPU."""
    import torch

    if torch.cuda.is_available():  # pragma: no cover - needs a GPU
        return "cuda"
    if torch.backends.mps.is_available():  # pragma: no cover - needs a Mac
        return "mps"
    return "cpu"
