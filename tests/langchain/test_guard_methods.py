"""A guard takes any method of the library, with a threshold where it has bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from snne_guard import ConfigurationError, SNNEGuard
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.guarding import record, split

SAMPLES = ["Paris", "Lyon", "Paris", "Rome"]
ENTROPY = 0.9502705392332347
"""Of three, one and one of five."""


@pytest.mark.parametrize(
    ("method", "similarity", "u"),
    [
        ("se", "exact", ENTROPY / math.log(5)),
        ("dse", "exact", ENTROPY / math.log(5)),
        ("num_set", "normalised", 0.5),
        ("vote_share", None, 0.5),
        ("lex_sim", None, 0.7),
        ("sum_eigv", "rouge_l", 0.5),
        ("deg", "rouge_l", 0.7),
        ("eccen", "exact", math.sqrt(0.5)),
    ],
)
def test_a_threshold_decides(method: str, similarity: str | None, u: float) -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        model = chat_openai(server)
        # Above u by less than anyone measures, and below it.
        for threshold, decision in ((u + 1e-9, "accept"), (u - 1e-9, "flag")):
            guard = SNNEGuard(
                model, method=method, similarity=similarity, threshold=threshold
            )
            found = record(guard.invoke("Capital of France?"))
            assert found["decision"] == decision
            assert found["method"] == method
            assert found["uncertainty"] == pytest.approx(u, abs=1e-12)
            assert found["reasons"] == []


def test_what_has_no_bounds_measures_only() -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        model = chat_openai(server)
        found = record(SNNEGuard(model, method="ne").invoke("Capital of France?"))
        with pytest.raises(ConfigurationError, match="'ne' has no bounds"):
            SNNEGuard(model, method="ne", threshold=0.5)

    assert found["score"] > 0
    assert found["uncertainty"] is None
    assert found["decision"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "dse", "similarity": "rouge_l"}, "which answers mean the same"),
        ({"method": "luq", "similarity": "exact"}, "probabilities of entailment"),
        ({"method": "lexsim"}, "'lex_sim'"),
    ],
)
def test_what_does_not_go_together_is_told_at_once(
    settings: dict[str, Any], message: str
) -> None:
    with (
        ChatServer(always("Paris")) as server,
        pytest.raises(ConfigurationError, match=message),
    ):
        SNNEGuard(chat_openai(server), **settings)
