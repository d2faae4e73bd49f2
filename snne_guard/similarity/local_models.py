"""Models of sentence-transformers, loaded once a process and used in turn."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeVar

from snne_guard.errors import (
    ConfigurationError,
    MissingExtraError,
    ScoringError,
    SnneGuardError,
)

__all__ = ["LocalModel", "model_name", "name_of"]

Result = TypeVar("Result")
Kind = Literal["CrossEncoder", "SentenceTransformer"]

_EXTRAS = {"CrossEncoder": "nli", "SentenceTransformer": "embeddings"}

_LOADING = threading.Lock()


class LocalModel:
    """One model in memory. Its tokenizer serves one thread at a time."""

    def __init__(self, name: str, model: Any) -> None:  # noqa: ANN401 - of torch
        self._name, self._model = name, model
        self._turn = threading.Lock()

    @staticmethod
    def of(
        kind: Kind, model: str | os.PathLike[str], *, device: str | None
    ) -> LocalModel:
        """Return the shared model, loaded at the first call. Its own code is never run.

        Args:
            kind: The class of sentence-transformers.
            model: A name on the Hugging Face Hub, or a folder.
            device: Such as ``"cuda:1"``; None for the best.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            ConfigurationError: The model cannot be loaded.
        """
        with _LOADING:  # or two threads would load it twice
            return _load(kind, model_name(model), device)

    def run(self, work: Callable[[Any], Result]) -> Result:
        """Return the result of a function of the model, run by one thread at a time.

        Raises:
            ScoringError: The model failed; its own error is the cause.
        """
        with self._turn:
            try:
                return work(self._model)
            except SnneGuardError:
                raise
            except Exception as error:
                msg = f"the model {self._name!r} failed with {type(error).__name__}"
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


def name_of(thing: object, *attributes: str) -> str:
    """Return the first of its attributes that is a name, else what Python calls it."""
    for attribute in (*attributes, "__qualname__"):
        name = getattr(thing, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(thing).__qualname__


@cache
def _load(kind: Kind, name: str, device: str | None) -> LocalModel:
    try:
        library: Any = import_module("sentence_transformers")
    except ImportError as error:
        needed = f"{error.name or 'sentence-transformers'} (for {name})"
        raise MissingExtraError(needed, extra=_EXTRAS[kind]) from error
    try:
        model: Any = getattr(library, kind)(name, device=device)
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"the model {name!r} cannot be loaded: {error}"
        raise ConfigurationError(msg) from error
    if kind == "CrossEncoder":  # an answer's "[SEP]" does not make two answers of it
        model.tokenizer.split_special_tokens = True
    return LocalModel(name, model)
