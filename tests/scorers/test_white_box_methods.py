"""The methods made of these functions: their needs, their limits, their numbers."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.scorers import FunctionMethod
from snne_guard.scorers.cocoa import COCOA_MSP, COCOA_PPL
from snne_guard.scorers.density import SEMANTIC_DENSITY
from snne_guard.scorers.eigen_score import EIGEN_SCORE
from snne_guard.scorers.kernel import KLE_FULL, KLE_HEAT, KLE_MATERN
from snne_guard.scorers.likelihood import (
    ANSWER_LENGTH,
    MEAN_SEQUENCE_PROBABILITY,
    PERPLEXITY,
    SEQUENCE_PROBABILITY,
)
from snne_guard.scorers.p_true import P_TRUE
from snne_guard.scorers.sar import SAR, SENT_SAR, TOKEN_SAR
from snne_guard.types import MethodInputs

LN5 = math.log(5)

# The delivered answer is a member and comes first; four samples follow it.
INPUTS = MethodInputs(
    similarity=np.array(
        [
            [1.0, 0.5, 0.1, 0.0, 1.0],
            [0.5, 1.0, 0.2, 0.0, 0.5],
            [0.1, 0.2, 1.0, 0.3, 0.1],
            [0.0, 0.0, 0.3, 1.0, 0.0],
            [1.0, 0.5, 0.1, 0.0, 1.0],
        ]
    ),
    mean_logprobs=np.array([-0.2, -0.7, -0.3, -1.5, -0.9]),
    answers=("It was I", "I", "you", "they", "I"),
    token_logprobs=tuple(
        np.array(tokens) for tokens in ([-0.1, -0.3], [-0.7], [-0.3], [-1.5], [-0.9])
    ),
    token_importance=tuple(
        np.array(tokens) for tokens in ([0.25, 0.75], [0.5], [0.5], [0.5], [0.0])
    ),
    cluster_ids=np.array([0, 0, 0, 1, 2]),
    graph=np.array(
        [
            [0.0, 2.0, 2.0, 0.5, 0.0],
            [2.0, 0.0, 1.5, 0.5, 0.0],
            [2.0, 1.5, 0.0, 1.0, 0.0],
            [0.5, 0.5, 1.0, 0.0, 0.5],
            [0.0, 0.0, 0.0, 0.5, 0.0],
        ]
    ),
    hidden_states=np.array([[1.0, 0.0, -1.0], [0.5, -1.0, 0.5]]),
    main_answer="It was I",
    main_logprobs=np.array([-0.1, -0.3]),
    main_similarity=np.array([1.0, 0.5, 0.5, 0.0]),
    main_entailment=np.array(
        [
            [[0.0, 0.2, 0.8]] * 2,
            [[0.9, 0.1, 0.0]] * 2,
            [[0.9, 0.1, 0.0]] * 2,
            [[0.0, 0.2, 0.8]] * 2,
        ]
    ),
    sample_mean_logprobs=np.array([-0.1, -0.1, -0.1, -0.1]),
    p_true_logprob=-0.25,
)

VALUES = [
    (KLE_HEAT, 1.3720053769566452, (0.0, LN5)),
    (KLE_MATERN, 1.460524918455579, (0.0, LN5)),
    (KLE_FULL, 1.137239780952811, (0.0, LN5)),
    (EIGEN_SCORE, (math.log(2.001) + math.log(1.501)) / 2, None),
    (SAR, -6.252956209011878, None),
    (TOKEN_SAR, (0.25 + 0.7 + 0.3 + 1.5 + 0.9) / 5, None),
    (SENT_SAR, -6.209250031009247, None),
    (P_TRUE, 1 - math.exp(-0.25), (0.0, 1.0)),
    (SEQUENCE_PROBABILITY, 1 - math.exp(-0.4), (0.0, 1.0)),
    (MEAN_SEQUENCE_PROBABILITY, 0.4628331805119723, (0.0, 1.0)),
    (PERPLEXITY, math.exp(0.2), None),
    (ANSWER_LENGTH, 3.0, None),
    # The two equal samples count once: distances 0.1, 0.95 and 0.95.
    (SEMANTIC_DENSITY, 2.0 / 3, (0.0, 1.0)),
    (COCOA_MSP, 0.4 * 0.5, None),
    (COCOA_PPL, 0.2 * 0.5, None),
]
METHODS = [method for method, _, _ in VALUES]


def named(value: object) -> str:
    return str(getattr(value, "name", ""))


@pytest.mark.parametrize(("method", "expected", "limits"), VALUES, ids=named)
def test_their_numbers_and_limits(
    method: FunctionMethod, expected: float, limits: tuple[float, float] | None
) -> None:
    got = method.compute(INPUTS)

    assert got == pytest.approx(expected, abs=1e-9)
    assert method.bounds(5) == limits
    u = method.uncertainty(got, 5)
    if limits is None:
        assert u is None
    else:
        assert u == pytest.approx((expected - limits[0]) / (limits[1] - limits[0]))


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_they_look_at_what_they_declare_and_at_nothing_else(
    method: FunctionMethod,
) -> None:
    needed = {need: getattr(INPUTS, need) for need in method.needs}
    unseen = {"similarity": np.full((5, 5), np.nan)}

    alone = MethodInputs(**{**unseen, **needed})

    assert method.compute(alone) == method.compute(INPUTS)
    for need in method.needs - {"similarity"}:
        without = MethodInputs(**{**unseen, **needed, need: None})
        with pytest.raises(InputError, match=f"expected {need} for method"):
            method.compute(without)


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_they_survive_pickling_and_name_their_source(method: FunctionMethod) -> None:
    assert pickle.loads(pickle.dumps(method)) == method  # noqa: S301 - ours
    assert method.source


def test_which_of_them_need_a_look_inside_the_model() -> None:
    black = {method.name for method in METHODS if not method.white_box}

    assert black == {"kle_heat", "kle_matern", "answer_length"}


def test_samples_alone_are_the_samples() -> None:
    """Density counts the same where the delivered answer is no member."""
    without = MethodInputs(
        similarity=np.full((4, 4), np.nan),
        answers=("I", "you", "they", "I"),
        main_entailment=INPUTS.main_entailment,
        sample_mean_logprobs=INPUTS.sample_mean_logprobs,
    )

    assert SEMANTIC_DENSITY.compute(without) == SEMANTIC_DENSITY.compute(INPUTS)
