"""The figures of the benchmark of spans, on passages whose ranking is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import spans


def test_sentences_are_ranked_pooled_and_within_passages() -> None:
    rows = [
        {"labels": ["accurate", "minor_inaccurate", "major_inaccurate"]},
        {"labels": ["accurate", "accurate"]},
        {"labels": ["accurate", "major_inaccurate"]},
    ]
    ranked = spans.Ranked([[0.1, 0.9, 0.1], [0.8, 0.2], [0.5, 0.4]], rows)
    # Wrong .9, .1, .4 against right .1, .8, .2, .5: 4 + .5 + 2 of 12 pairs.
    # Within the first passage 1.5 of 2, within the last 0 of 1.
    assert ranked.auroc(np.ones(3)) == pytest.approx((6.5 / 12, 0.375))
    twice = np.array([1.0, 0.0, 2.0])
    assert ranked.auroc(twice)[1] == pytest.approx((0.75 + 0 + 0) / 3)


@pytest.mark.parametrize(
    ("sentence", "label"),
    [
        ("The Orla Bridge was opened in 1896.", "accurate"),
        ("It cost 3,000 crowns, and Magnus Rydell built it.", "accurate"),
        ("It was built by Magnus Holm.", "invented"),
        ("It was opened in 1897.", "invented"),
        ("It cost 3,001 crowns.", "invented"),
        ("Opened by a king, the Orla Bridge is long.", None),
        ("Length: It is long.", None),
    ],
)
def test_a_sentence_that_names_what_is_not_known_is_invented(
    sentence: str, label: Any
) -> None:
    row = {
        "context": "Opened in 1896. Its engineer was Magnus Rydell. It cost 3,000.",
        "question": "Write a profile of the Orla Bridge in six sentences: Length.",
        "main_answer": f"{sentence} It is old.",
        "samples": ["It is old."],
    }
    found = spans.own(row)
    assert found["labels"] == ([] if label is None else [label])
    assert found["sentences"] == ([] if label is None else [sentence])
