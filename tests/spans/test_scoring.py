"""The uncertainty of parts: the formula on small cases, properties, bad input."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import score_spans
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import snne, uncertainty
from snne_guard.spans import calibrate_spans
from snne_guard.spans.matching import word_match

OAK = "It is oak."
MATCHES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def fixed(*rows: Any) -> Any:
    """Return a similarity that gives these matches, whatever is compared."""
    return lambda parts, texts, *, question: np.array(rows, dtype=float)


# -- The formula -----------------------------------------------------------------------


@given(MATCHES)
def test_it_is_the_anchored_snne_of_the_row(matches: list[float]) -> None:
    [span] = score_spans(OAK, ["x"] * len(matches), similarity=fixed(matches))
    n = len(matches) + 1
    matrix = np.eye(n)
    matrix[0, 1:] = matches
    value = snne(matrix, anchor=1.0)
    assert span.uncertainty == pytest.approx(uncertainty(value, n), abs=1e-9)
    assert 0 <= span.uncertainty <= 1


def test_literal_values() -> None:
    [span] = score_spans(OAK, ["x"] * 2, similarity=fixed([1, 0.5]))
    expected = 0.5 * (math.e - math.exp(0.5)) / (math.e - 1)
    assert span.uncertainty == pytest.approx(expected)
    assert (span.start, span.end, span.supported, span.grounded) == (0, 10, 1, None)


def test_the_context_grounds_and_never_enters_the_uncertainty() -> None:
    samples = ["It is elm."]
    [alone] = score_spans(OAK, samples)
    [beside] = score_spans(OAK, samples, context="The lamp is made of wood. It is oak.")
    assert beside.uncertainty == alone.uncertainty > 0.8
    assert (alone.grounded, beside.grounded) == (None, 1.0)
    assert "grounded" not in alone.to_dict()
    assert beside.to_dict()["grounded"] == 1.0


# -- By words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "text", "match"),
    [
        ("It is oak.", "What is it? It is oak, I think.", 1.0),
        ("born in Bern", "She died in Bern.", 25 / 33),
        # A number that is not there, and a negation, halve it.
        ("born in 1907", "born in 1908", 9 / 33 / 2),
        ("born in 1907", "Of 1907. She was born in it.", 24 / 33),
        ("It is oak.", "It is not oak.", 1 / 2),
        # One sentence has to say it all.
        ("Oak and elm", "Oak. Elm.", 24 / 33),
        ("**Oak** [and](x.y) elm", "Oak and elm", 1.0),
        ("```\na = 1\n```", "```python\na = 1\n```", 1.0),
        ("```\na = 1\n```", "a = 2", 0.0),
        ("你好吗", "我很好。你好吗。", 1.0),
    ],
)
def test_a_match_by_words(part: str, text: str, match: float) -> None:
    assert word_match([part], [text])[0, 0] == pytest.approx(match)


def test_words_of_the_question_count_for_little() -> None:
    question = "Who designed the lamp Aurora?"
    part, text = "Ida designed the lamp Aurora.", "Max designed the lamp Aurora."
    asked = word_match([part], [text], question=question)[0, 0]
    assert asked == pytest.approx(7 / 31)
    assert asked < word_match([part], [text])[0, 0]


# -- Input -----------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", "  \n", "...", "\u200b"])
def test_a_blank_answer_has_no_parts(answer: str) -> None:
    assert score_spans(answer, ["It is oak."]) == []


def test_given_sentences_are_found_in_order() -> None:
    answer = "Oak. Elm; ash. Oak."
    spans = score_spans(answer, ["Oak."], sentences=["Oak.", "ash", "Oak."])
    assert [(span.start, span.end) for span in spans] == [(0, 4), (10, 13), (15, 19)]
    for sentences in (["Elm", "Oak.", "Oak."], ["Fir"]):
        with pytest.raises(InputError, match="is not in the answer"):
            score_spans(answer, ["Oak."], sentences=sentences)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"samples": []}, InputError),
        ({"samples": [None]}, InputError),
        ({"context": 5}, InputError),
        ({"similarity": "content_f1"}, ConfigurationError),
        ({"similarity": fixed([0.5])}, InputError),
        ({"similarity": fixed([0.5, 1.5])}, InputError),
    ],
)
def test_bad_input_is_refused(given: Any, error: Any) -> None:
    call = {"answer": OAK, "samples": ["x", "y"], **given}
    with pytest.raises(error, match="expected"):
        score_spans(call.pop("answer"), **call)


@pytest.mark.parametrize(
    "unit", ["The oak {0} is {0} m tall. ", "word ", "橡树很高。", "- a\n", "> ", "[]("]
)
def test_long_texts_take_time_in_proportion(unit: str) -> None:
    def seconds(length: int) -> float:
        count = length // len(unit)
        answer, sample = (
            "".join(unit.format(number + shift) for number in range(count))
            for shift in (0, 3)
        )
        begin = time.process_time()
        score_spans(answer, [sample])
        return time.process_time() - begin

    seconds(1_000)
    assert seconds(50_000) < 40 * seconds(5_000) + 0.25


# -- A threshold -----------------------------------------------------------------------


def labelled(number: int) -> dict[str, Any]:
    """A recording whose first sentence is right in three of four."""
    right = int(number % 4 != 0)
    return {
        "id": f"row-{number}",
        "main_answer": "It is oak. It is tall.",
        "sentences": ["It is oak.", "It is tall."],
        "sentence_labels": [right, 1],
        "samples": [f"It is {'oak' if right else 'elm'}. It is tall."] * 2,
    }


def test_a_threshold_of_one_sentence_an_answer() -> None:
    rows = [labelled(number) for number in range(200)]
    threshold = calibrate_spans(rows, alpha=0.05)
    assert (threshold.status, threshold.n_labels) == ("certified", 200)
    assert threshold.value < 0.5
    assert calibrate_spans(rows[:5], alpha=0.05).value == -1.0


def test_recordings_that_do_not_fit_are_refused() -> None:
    for labels in (None, 5, "yes"):
        with pytest.raises(InputError, match=r"recording .*: .*sentence_labels"):
            calibrate_spans([{**labelled(1), "sentence_labels": labels}], alpha=0.1)
    with pytest.raises(InputError, match="expected 2 sentence_labels, got 1"):
        calibrate_spans([{**labelled(1), "sentence_labels": [1]}], alpha=0.1)
    with pytest.raises(InputError, match="expected the field 'samples'"):
        calibrate_spans([{"main_answer": "It is oak."}], alpha=0.1)
