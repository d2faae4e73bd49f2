"""What a user named on the command line as ``module:object``."""

from __future__ import annotations

import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

from snne_guard.errors import ConfigurationError

__all__ = ["import_object"]

_MISSING = object()


def import_object(name: str, /, *, folder: str | Path | None = None) -> Any:  # noqa: ANN401
    """Return what ``module:object`` names.

    Importing a module runs it with all the rights of this process. Only a name that
    the user typed may come here, never one from a recording or another file.

    Args:
        name: As in ``my_graders:is_right`` or ``package.module:Class.method``.
        folder: Where the module is looked for first; None for the current folder.

    Raises:
        ConfigurationError: The name has another form, or there is no such module or
            object. What the module itself raises on import is passed on.
    """
    module_name, colon, object_name = name.partition(":")
    parts = [*module_name.split("."), *object_name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        msg = f"expected a name as module:object, got {name!r}"
        raise ConfigurationError(msg)
    found: Any = _import_from(module_name, str(Path(folder or ".").resolve()))
    for part in object_name.split("."):
        found = getattr(found, part, _MISSING)
    if found is _MISSING:
        msg = f"expected {object_name!r} in module {module_name!r}"
        raise ConfigurationError(msg)
    return found


def _import_from(module: str, folder: str) -> Any:  # noqa: ANN401 - a module's names
    # The console script does not look into the current folder, as `python -m` does.
    # What the module imports beside itself, it imports now.
    sys.path.insert(0, folder)
    invalidate_caches()
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        msg = f"expected a module {module!r} in {folder!r} or installed"
        raise ConfigurationError(msg) from error
    finally:
        sys.path.remove(folder)
