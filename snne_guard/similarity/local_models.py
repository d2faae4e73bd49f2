"""Models of sentence-transformers, loaded once a process and used in turn."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, TypeVar

from snne_guard.errors import (
    ConfigurationError,
    MissingExtraError,
    ScoringError,
    SnneGuardError,
)

__all__ = ["LocalModel", "check_batch_size", "model_name"]

Result = TypeVar("Result")
Kind = Literal["CrossEncoder", "SentenceTransformer"]

_LOADED: dict[tuple[str, str, str | None, str | None], LocalModel] = {}
_LOADING = threading.Lock()


class LocalModel:
    """One model in memory. Its tokenizer serves one thread at a time."""

    def __init__(self, name: str, model: Any) -> None:  # noqa: ANN401 - of torch
        self.name = name
        self.model = model
        self._turn = threading.Lock()

    @classmethod
    def of(
        cls,
        kind: Kind,
        name: str,
        *,
        device: str | None,
        extra: str,
        revision: str | None = None,
    ) -> LocalModel:
        """Return the shared model, loaded at the first call. Its own code is never run.

        Args:
            kind: The class of sentence-transformers.
            name: A name on the Hugging Face Hub, or a folder.
            device: Such as ``"cuda:1"``; None for the best.
            extra: The extra of this library that installs what is needed.
            revision: Branch, tag or commit.
        """
        key = (kind, name, device, revision)
        with _LOADING:
            if key not in _LOADED:
                _LOADED[key] = cls(name, _load(*key, extra=extra))
            return _LOADED[key]

    def run(self, work: Callable[[Any], Result]) -> Result:
        """Return what the work makes of the model, when it is this thread's turn.

        Raises:
            ScoringError: The model failed; its own error is the cause.
        """
        with self._turn:
            try:
                return work(self.model)
            except SnneGuardError:
                raise
            except Exception as error:
                msg = f"the model {self.name!r} failed with {type(error).__name__}"
                raise ScoringError(msg) from error


def model_name(model: object) -> str:
    """Return the name or the path of a model as a text.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(model, str | os.PathLike) or model == "":
        msg = f"expected model to be a name or a path, got {model!r}"
        raise ConfigurationError(msg)
    return str(os.fspath(model))


def check_batch_size(value: object) -> None:
    """Check that it is a whole number of at least 1.

    Raises:
        ConfigurationError: It is not.
    """
    if not isinstance(value, int) or value < 1:
        msg = f"expected batch_size to be at least 1, got {value!r}"
        raise ConfigurationError(msg)


def _load(
    kind: str, name: str, device: str | None, revision: str | None, *, extra: str
) -> Any:  # noqa: ANN401 - of torch
    try:
        library: Any = import_module("sentence_transformers")
    except ImportError as error:
        needed = f"{error.name or 'sentence-transformers'} (for {name})"
        raise MissingExtraError(needed, extra=extra) from error
    try:
        return getattr(library, kind)(name, device=device, revision=revision)
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"the model {name!r} cannot be loaded: {error}"
        raise ConfigurationError(msg) from error
