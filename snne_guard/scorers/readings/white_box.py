"""Readings of methods that look at tokens, states, or the model itself."""

from __future__ import annotations

import math

from snne_guard.scorers.arrays import given
from snne_guard.scorers.density import SEMANTIC_DENSITY, semantic_density
from snne_guard.scorers.eigen_score import EIGEN_SCORE, eigen_score
from snne_guard.scorers.p_true import P_TRUE, p_true
from snne_guard.scorers.readings.other import CODE, other_reading
from snne_guard.scorers.sar import SAR, TOKEN_SAR, sar, token_sar
from snne_guard.types import MethodInputs

__all__ = ["WHITE_BOX"]


def _sar_inverted(inputs: MethodInputs) -> float:
    return sar(
        given(inputs.token_logprobs),
        given(inputs.token_importance),
        inputs.similarity,
        authors_bug=True,
    )


def _token_sar_inverted(inputs: MethodInputs) -> float:
    logprobs, importance = given(inputs.token_logprobs), given(inputs.token_importance)
    return token_sar(logprobs, importance, authors_bug=True)


def _eigen_score_official(inputs: MethodInputs) -> float:
    return eigen_score(given(inputs.hidden_states), reading="official")


def _p_true_code(inputs: MethodInputs) -> float:
    return p_true(given(inputs.p_true_logprob), reading="code")


def _semantic_density_forward(inputs: MethodInputs) -> float:
    logprobs, answers = given(inputs.sample_mean_logprobs), given(inputs.answers)
    main = given(inputs.main_logprobs)
    return semantic_density(
        given(inputs.main_entailment),
        logprobs,
        texts=answers[len(answers) - len(logprobs) :],
        main_mean_logprob=math.fsum(main) / len(main),
        directions="forward",
    )


WHITE_BOX = (
    other_reading(SAR, "sar_inverted", f"the weights inverted, {CODE}", _sar_inverted),
    other_reading(
        TOKEN_SAR,
        "token_sar_inverted",
        f"the weights inverted, {CODE}",
        _token_sar_inverted,
    ),
    other_reading(
        EIGEN_SCORE,
        "eigen_score_official",
        "decadic logarithms, covariance divided by d - 1, as in its own repository",
        _eigen_score_official,
    ),
    other_reading(
        P_TRUE, "p_true_code", f"1 - log P(True), {CODE}", _p_true_code, limits=None
    ),
    other_reading(
        SEMANTIC_DENSITY,
        "semantic_density_forward",
        "one direction, the delivered answer one more sample, as in LM-Polygraph",
        _semantic_density_forward,
        needs=SEMANTIC_DENSITY.needs | {"main_logprobs"},
    ),
)
"""In the order of the page on methods."""
