"""From recordings to paths and to a rule."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import score
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Recording, learn_stop, uncertainty_paths
from snne_guard.types import FloatArray, MethodInputs

TEXTS = st.sampled_from(["Paris", "in Paris", "Lyon", "Rome", " "])


def recording(*texts: str, **fields: Any) -> Recording:
    return Recording(
        **{
            "id": "r1",
            "question": "Where?",
            "main_answer": texts[0],
            "samples": texts[1:],
            **fields,
        }
    )


@given(texts=st.lists(TEXTS, min_size=7, max_size=9), include_answer=st.booleans())
def test_each_value_is_the_score_of_the_members_so_far(
    texts: list[str], include_answer: bool
) -> None:
    rounds = (2, 4, 6)
    paths = uncertainty_paths(
        [recording(*texts)], rounds=rounds, include_answer=include_answer
    )
    drawn = texts[:6] if include_answer else texts[1:7]
    for m, found in zip(rounds, paths[0].tolist(), strict=True):
        used = [text for text in drawn[:m] if text.strip()]
        enough = len(used) >= (m if m < 6 else 3)
        if not enough or (include_answer and texts[0] == " "):
            assert math.isnan(found)
        else:
            expected = score(used, question="Where?", include_answer=include_answer)
            assert found == pytest.approx(expected.uncertainty)


def test_wsnne_takes_the_log_probabilities_of_the_members() -> None:
    logprobs = [(-0.1, -0.2), (-1.0,), (-0.5, -0.6, -0.7), (-2.0,)]
    texts = ["Paris", "Lyon", "Paris", "Rome"]
    known = recording(*texts, main_logprobs=logprobs[0], token_logprobs=logprobs[1:])
    paths = uncertainty_paths([known], rounds=(2, 4), method="wsnne", tau=0.5)
    for m, found in zip((2, 4), paths[0].tolist(), strict=True):
        expected = score(texts[:m], token_logprobs=logprobs[:m], tau=0.5).uncertainty
        assert found == pytest.approx(expected)
    alone = uncertainty_paths(
        [known], rounds=(2, 3), method="wsnne", include_answer=False
    )
    expected = score(texts[1:], token_logprobs=logprobs[1:]).uncertainty
    assert alone[0, 1] == pytest.approx(expected)
    unknown = recording(*texts, main_logprobs=logprobs[0])
    with pytest.raises(
        InputError, match="recording 'r1': expected mean_logprobs for method 'wsnne'"
    ):
        uncertainty_paths([unknown], rounds=(2, 4), method="wsnne")


def test_the_similarity_is_told_what_was_asked() -> None:
    texts = ["The capital is Paris", "The capital is Lyon"]
    asked = recording(*texts, question="What is the capital?")
    unasked = recording(*texts, question="Where?")
    paths = uncertainty_paths([asked, unasked], rounds=(2,))
    expected = score(texts, question="What is the capital?").uncertainty
    assert paths[0, 0] == pytest.approx(expected)
    assert paths[0, 0] > paths[1, 0]  # words of the question weigh less


def test_a_recording_with_too_few_samples_is_named() -> None:
    with pytest.raises(InputError, match="expected 3 samples in recording 'r1', got 2"):
        uncertainty_paths([recording("a", "b", "c")], rounds=(2, 4))


def test_no_recordings_are_no_rows() -> None:
    assert uncertainty_paths([], rounds=(2, 4)).shape == (0, 2)


def test_a_method_without_u_has_no_values() -> None:
    class Own:
        name, needs, white_box, source = "own", frozenset[str](), False, ""

        def compute(self, inputs: MethodInputs, /) -> float:
            return float(inputs.similarity.mean())

        def bounds(self, n: int, /, *, tau: float = 1.0) -> None:
            del n, tau

        def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> None:
            del value, n, tau

    found = uncertainty_paths([recording("a", "b")], rounds=(2,), method=Own())
    assert np.isnan(found).all()


def write(path: Path, **changed: Any) -> Path:
    """A hundred questions of which half are answered always alike."""
    lines = [
        {
            "id": str(place),
            "question": "Where?",
            "main_answer": "Paris",
            "samples": ["Paris" if place % 2 else f"place {i}" for i in range(9)],
            "settings": {"temperature": 1.0},
            **changed,
        }
        for place in range(100)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_a_rule_is_learnt_from_a_file_and_carries_its_settings(tmp_path: Path) -> None:
    path = write(tmp_path / "recorded.jsonl")
    rule = learn_stop(path, rounds=(3, 5, 10), threshold=0.4, tau=0.5)
    assert (rule.mean_members, rule.n_records) == (3.0, 100)
    assert rule.settings == {
        "n": 10,
        "method": "snne",
        "similarity": "content_f1",
        "anchor": 0.7,
        "tau": 0.5,
        "rounds": (3, 5, 10),
        "include_answer": True,
        "threshold": 0.4,
        "temperature": 1.0,
    }


def test_a_similarity_and_a_method_of_a_users_own_are_named(tmp_path: Path) -> None:
    from snne_guard.scorers import METHODS

    def same(texts: Any, /, *, question: str | None = None) -> FloatArray:
        assert question == "Where?"
        return np.array([[float(a == b) for a in texts] for b in texts])

    rule = learn_stop(
        str(write(tmp_path / "recorded.jsonl")),
        rounds=(3, 10),
        threshold=0.4,
        similarity=same,
        method=METHODS["snne"],
    )
    assert (rule.method, rule.similarity.rsplit(".")[-1]) == ("snne", "same")


def test_samples_drawn_otherwise_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "recorded.jsonl", settings={"temperature": 0.7})
    with pytest.raises(InputError, match=r"temperature 1\.0; those of recording '0'"):
        learn_stop(path, rounds=(3, 10), threshold=0.4)
    assert learn_stop(path, rounds=(3, 10), threshold=0.4, temperature=0.7).n == 10
    write(path, settings=None)
    assert learn_stop(path, rounds=(3, 10), threshold=0.4, temperature=0.7).n == 10


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("{}")
    with pytest.raises(InputError, match="line 1"):
        learn_stop(path, rounds=(3, 10), threshold=0.4)
    with pytest.raises(ConfigurationError, match="shrug"):
        learn_stop([], rounds=(3, 10), threshold=0.4, method="shrug")
