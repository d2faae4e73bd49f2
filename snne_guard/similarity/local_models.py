"""sentence-transformers models, loaded once per process, used by one thread at once."""

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

Result = TypeVar("Result")
Kind = Literal["CrossEncoder", "SentenceTransformer"]

_EXTRAS = {"CrossEncoder": "nli", "SentenceTransformer": "embeddings"}

# Two threads would load a model twice, and a tokenizer serves one at a time.
_TURN = threading.Lock()


def run_model(
    kind: Kind, name: str | os.PathLike[str], work: Callable[[Any], Result]
) -> Result:
    """Return the result of a function of a model, run by one thread at a time.

    The model is loaded at the first call. Code that comes with it is never run.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ConfigurationError: The model cannot be loaded.
        ScoringError: The model failed; its own error is the cause.
    """
    with _TURN:
        model = _load(kind, os.fspath(name))
        try:
            return work(model)
        except SnneGuardError:
            raise
        except Exception as error:
            msg = f"the model {name!r} failed with {type(error).__name__}"
            raise ScoringError(msg) from error


def name_of(thing: object, *attributes: str) -> str:
    """Return the first of its attributes that is a name, else what Python calls it."""
    for attribute in (*attributes, "__qualname__"):
        name = getattr(thing, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(thing).__qualname__


@cache
def _load(kind: Kind, name: str) -> Any:  # noqa: ANN401 - of torch
    try:
        library: Any = import_module("sentence_transformers")
    except ImportError as error:
        needed = f"{error.name or 'sentence-transformers'} (for {name})"
        raise MissingExtraError(needed, extra=_EXTRAS[kind]) from error
    try:
        model = getattr(library, kind)(name)
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"the model {name!r} cannot be loaded: {error}"
        raise ConfigurationError(msg) from error
    if kind == "CrossEncoder":  # an answer's own "[SEP]" must not split it in two
        model.tokenizer.split_special_tokens = True
    return model
