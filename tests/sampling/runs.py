"""A model that is asked inside of a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import (
    BaseCallbackHandler,
    CallbackManager,
)
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig

__all__ = ["PARENT", "model", "under"]


def model(**options: Any) -> FakeListChatModel:
    return FakeListChatModel(responses=["x"], **options)


def under(*handlers: BaseCallbackHandler, **options: Any) -> RunnableConfig:
    """Return the configuration of a call whose own run is the parent."""
    manager = CallbackManager(
        handlers=list(handlers),
        inheritable_handlers=list(handlers),
        parent_run_id=PARENT,
    )
    config: RunnableConfig = {"callbacks": manager, **options}  # type: ignore[typeddict-item]  # any key of it
    return config


PARENT = UUID(int=7)
