"""All that the numbers of a model depend on, besides what it is asked."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

__all__ = ["identity_of"]

_PACKAGES = ("snne-guard", "torch", "transformers", "sentence-transformers")
_NO_MATTER = frozenset({"batch_size", "name"})


def identity_of(similarity: Any, name: str | None, /) -> str | None:  # noqa: ANN401
    """Return what tells a model's numbers from those of any other, None if unknown.

    That is its class, its options, the files or the revision of its weights, and the
    versions of the packages that run it.

    Args:
        similarity: What compares answers.
        name: The name under which the library made it, None for an object of the
            user's own. Such an object is known only if it is a dataclass of this
            library or has a text ``cache_key``.
    """
    kind: type[object] = type(cast("object", similarity))
    own = getattr(similarity, "cache_key", None)
    parts = [f"{kind.__module__}.{kind.__qualname__}"]
    if isinstance(own, str):
        parts.append(own)
    elif is_dataclass(similarity) and kind.__module__.startswith("snne_guard."):
        parts += [
            f"{one.name}={getattr(similarity, one.name)!r}"
            for one in fields(similarity)
            if one.name not in _NO_MATTER
        ]
    elif name is not None:
        parts.append(name)
    else:
        return None
    model = getattr(similarity, "model", None) or (name or "").partition(":")[2]
    return "\n".join([*parts, _weights(str(model)), *map(_version, _PACKAGES)])


def _weights(model: str) -> str:
    """Return what changes when the weights behind a name change."""
    if model and Path(model).is_dir():
        files = sorted(path for path in Path(model).rglob("*") if path.is_file())
        stats = ((path.name, path.stat()) for path in files)
        return ";".join(f"{name},{s.st_size},{s.st_mtime_ns}" for name, s in stats)
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    # Where the hub's client notes which commit a branch is at.
    branch = hub / f"models--{model.replace('/', '--')}" / "refs" / "main"
    return branch.read_text("utf-8") if model and branch.is_file() else ""


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"
