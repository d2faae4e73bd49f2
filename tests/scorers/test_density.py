"""Semantic density: literal numbers, a slow oracle, both readings, its properties."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.density import semantic_density

# Delivered answer to sample, sample to delivered answer.
ALIKE = [[0.0, 0.1, 0.9], [0.1, 0.1, 0.8]]
VAGUE = [[0.1, 0.8, 0.1], [0.0, 0.5, 0.5]]
OPPOSED = [[0.9, 0.1, 0.0], [1.0, 0.0, 0.0]]
ENTAILMENT = [ALIKE, VAGUE, OPPOSED]
LOGPROBS = [-0.1, -0.5, -2.0]

Triple = tuple[float, float, float]


def slow_density(
    entailment: Any,
    logprobs: Sequence[float],
    *,
    texts: Sequence[str] | None = None,
    main: float | None = None,
    forward: bool = False,
) -> float:
    """Each text once, with the mean weight of its copies; the kernel as printed."""
    names = [str(place) for place in range(len(logprobs))] if texts is None else texts
    numerator = denominator = 0.0
    for name in dict.fromkeys(names):
        places = [place for place, other in enumerate(names) if other == name]
        weight = sum(math.exp(logprobs[place]) for place in places) / len(places)
        pairs = entailment[places[0]][:1] if forward else entailment[places[0]]
        squared = sum(c + n / 2 for c, n, _ in pairs) / len(pairs)
        kernel = 1 - squared if math.sqrt(squared) <= 1 else 0.0
        numerator += weight * kernel
        denominator += weight
    if main is not None:
        numerator += math.exp(main)
        denominator += math.exp(main)
    return 1 - numerator / denominator


def normalised(drawn: Triple) -> list[float]:
    total = sum(drawn)
    return [value / total for value in drawn]


triples = st.tuples(*[st.floats(0.001, 1)] * 3).map(normalised)


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[Any], list[float], list[str]]:
    """Samples of which equal ones are as far from the delivered answer."""
    texts = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8))
    pairs = {text: [draw(triples), draw(triples)] for text in sorted(set(texts))}
    logprobs = [draw(st.floats(-30, 0)) for _ in texts]
    return [pairs[text] for text in texts], logprobs, texts


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.27320320770000117),
        ({"directions": "forward"}, 0.28971564104142444),
        ({"main_mean_logprob": -0.3}, 0.1884316538983617),
        ({"main_mean_logprob": -0.3, "directions": "forward"}, 0.19982048476387448),
    ],
)
def test_known_values(options: dict[str, Any], expected: float) -> None:
    got = semantic_density(ENTAILMENT, LOGPROBS, **options)

    assert got == pytest.approx(expected, abs=1e-9)


@given(samples(), st.none() | st.floats(-30, 0), st.booleans(), st.booleans())
def test_it_is_its_definition(
    drawn: tuple[list[Any], list[float], list[str]],
    main: float | None,
    forward: bool,
    once: bool,
) -> None:
    entailment, logprobs, texts = drawn
    got = semantic_density(
        entailment,
        logprobs,
        texts=texts if once else None,
        main_mean_logprob=main,
        directions="forward" if forward else "both",
    )

    expected = slow_density(
        entailment, logprobs, texts=texts if once else None, main=main, forward=forward
    )
    assert got == pytest.approx(expected, abs=1e-9)
    assert 0 <= got <= 1


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(
    drawn: tuple[list[Any], list[float], list[str]], random: Any
) -> None:
    entailment, logprobs, texts = drawn
    order = list(range(len(texts)))
    random.shuffle(order)
    shuffled = semantic_density(
        [entailment[place] for place in order],
        [logprobs[place] for place in order],
        texts=[texts[place] for place in order],
    )

    assert shuffled == pytest.approx(
        semantic_density(entailment, logprobs, texts=texts), abs=1e-12
    )


def test_equal_samples_count_once() -> None:
    once = semantic_density([ALIKE, OPPOSED], [-0.1, -0.1], texts=["a", "b"])
    often = [ALIKE, ALIKE, ALIKE, OPPOSED]

    got = semantic_density(often, [-0.1] * 4, texts=["a", "a", "a", "b"])

    assert got == pytest.approx(once)
    assert semantic_density(often, [-0.1] * 4) < once


def test_all_alike_and_all_opposed() -> None:
    same = [[[0.0, 0.0, 1.0]] * 2] * 3
    other = [[[1.0, 0.0, 0.0]] * 2] * 3

    assert semantic_density(same, LOGPROBS) == 0.0
    assert semantic_density(other, LOGPROBS) == 1.0
    assert semantic_density(other[:1], [-3.0]) == 1.0


def test_log_probabilities_far_below_what_a_float_holds() -> None:
    shifted = [value - 5000 for value in LOGPROBS]

    assert semantic_density(ENTAILMENT, shifted) == pytest.approx(
        semantic_density(ENTAILMENT, LOGPROBS)
    )
    impossible = semantic_density(ENTAILMENT, [-math.inf] * 3)
    assert impossible == pytest.approx(semantic_density(ENTAILMENT, [-1.0] * 3))
    assert semantic_density(ENTAILMENT, [-1.0, -1.0, -math.inf]) == pytest.approx(
        semantic_density(ENTAILMENT[:2], [-1.0, -1.0])
    )


@pytest.mark.parametrize(
    ("entailment", "logprobs", "message"),
    [
        (ENTAILMENT, LOGPROBS[:2], "3 mean_logprobs, got shape"),
        (ENTAILMENT, [-1.0, -1.0, 0.5], "mean_logprobs of at most 0, got 0.5"),
        (np.zeros((0, 2, 3)), [], r"m >= 1, got shape \(0, 2, 3\)"),
        (np.zeros((2, 2)), [-1.0] * 2, r"m >= 1, got shape \(2, 2\)"),
        (np.full((1, 2, 3), 0.5), [-1.0], "that add up to 1"),
        ([[[1.5, -0.5, 0.0]] * 2], [-1.0], "that add up to 1"),
        (np.full((1, 2, 3), math.nan), [-1.0], "main_entailment without NaN"),
    ],
)
def test_bad_input(entailment: Any, logprobs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        semantic_density(entailment, logprobs)


@pytest.mark.parametrize("texts", [["a", "b"], "abc"])
def test_texts_that_do_not_fit(texts: Any) -> None:
    with pytest.raises(InputError, match="expected 3 texts, got"):
        semantic_density(ENTAILMENT, LOGPROBS, texts=texts)


def test_unknown_directions() -> None:
    with pytest.raises(ConfigurationError, match="'both' or 'forward', got 'back'"):
        semantic_density(ENTAILMENT, LOGPROBS, directions="back")  # type: ignore[arg-type]
