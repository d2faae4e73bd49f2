"""A forked process compares answers while its parent's threads hold every lock."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from snne_guard.similarity import NLI, Embedding, EntailmentJudge
from snne_guard.similarity._nli_engine import ENGINES
from tests.support.tiny_embedding import save_embedding
from tests.support.tiny_nli import save_model


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_nothing_is_waited_for_that_stayed_in_the_parent(tmp_path: Path) -> None:
    nli = NLI(save_model(tmp_path))
    before = nli(["yes", "no"])
    shared = nli._engine()
    judge = EntailmentJudge(lambda _prompt: "entailment", max_concurrency=1)
    judge(["a", "b"])

    embedding = Embedding(save_embedding(tmp_path / "embedding"))
    embedding(["a", "b"])
    sentences: Any = embedding._encode

    def is_free() -> bool:
        same = (nli(["yes", "no"]) == before).all() and nli(["yes", "a"])[0, 1] < 1
        same &= embedding(["a", f"b {os.getpid()}"]).shape == (2, 2)
        return bool(same and judge(["a", "b", "c"]).all() and judge.calls == 6)

    held = (
        *(ENGINES._lock, shared._lock, shared._known._lock, judge._lock, judge._slots),
        *(sentences._lock, embedding._memo._lock),
    )
    for lock in held:
        lock.acquire()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        signal.alarm(300)  # rather than wait for ever
        os._exit(0 if is_free() else 1)
    for lock in held:
        lock.release()
    assert os.waitpid(child, 0)[1] == 0
    assert is_free()
