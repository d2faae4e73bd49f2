"""Semantic density: how likely the answers near the delivered one in meaning are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.arrays import as_logprobs, given
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import as_floats
from snne_guard.types import FloatArray, MethodInputs

__all__ = ["SEMANTIC_DENSITY", "Directions", "semantic_density"]

Directions = Literal["both", "forward"]

_NEUTRAL_DISTANCE = 0.5
_SLACK = 1e-2
"""What half precision may leave of a sum of probabilities that should be 1."""


def semantic_density(
    main_entailment: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    texts: Sequence[str] | None = None,
    main_mean_logprob: float | None = None,
    directions: Directions = "both",
) -> float:
    r"""Return 1 less the semantic density of the delivered answer.

    .. math::
        SD = \frac{\sum_i w_i K_i}{\sum_i w_i}, \quad w_i = \exp(\ell_i), \quad
        K_i = \max(0, 1 - d_i^2), \quad d_i^2 = p_c + \tfrac12 p_n

    over samples that differ as texts, :math:`d_i^2` the expected squared distance in
    meaning to the delivered answer, by the probabilities of contradiction and neutral.

    Args:
        main_entailment: ``(m, 2, 3)`` probabilities of contradiction, neutral and
            entailment: delivered answer to sample, then sample to delivered answer.
        mean_logprobs: ``(m,)`` mean token log-probabilities of the samples in nats.
        texts: The m samples. Equal ones count once, with the mean of their weights;
            None lets each count.
        main_mean_logprob: That of the delivered answer, which then counts as one more
            sample at distance 0, as in LM-Polygraph; None leaves it out, as in the
            paper.
        directions: ``"both"`` takes the mean distance of both directions, ``"forward"``
            only that from the delivered answer, as in LM-Polygraph.

    Returns:
        A value in [0, 1], higher is more uncertain.

    Raises:
        InputError: The lengths differ, there are no samples, or something is no
            probability or log-probability.
        ConfigurationError: ``directions`` is another word.

    Source:
        Qiu and Miikkulainen 2024, "Semantic Density" (arXiv 2405.13845). That both
        directions count is our reading: the paper speaks of pairs.

    Example:
        >>> agrees, differs = [0.0, 0.2, 0.8], [0.9, 0.1, 0.0]
        >>> round(semantic_density([[agrees] * 2, [differs] * 2], [-0.1, -0.1]), 4)
        0.525
    """
    if directions not in get_args(Directions):
        msg = f"expected directions 'both' or 'forward', got {directions!r}"
        raise ConfigurationError(msg)
    probabilities = _checked(main_entailment)
    logs = as_logprobs(mean_logprobs, what="mean_logprobs", n=len(probabilities))
    if directions == "forward":
        probabilities = probabilities[:, :1]
    one_way = probabilities[:, :, 0] + _NEUTRAL_DISTANCE * probabilities[:, :, 1]
    distances = np.minimum(one_way.mean(axis=1), 1.0)
    shares = np.ones(len(logs)) if texts is None else _shares(texts, len(logs))
    if main_mean_logprob is not None:
        own = as_logprobs([main_mean_logprob], what="main_mean_logprob")
        logs, shares = np.append(logs, own), np.append(shares, 1.0)
        distances = np.append(distances, 0.0)
    top = logs.max()
    # All impossible: then none is more so than another.
    likely = np.ones_like(logs) if np.isneginf(top) else np.exp(logs - top)
    weights = shares * likely
    # Exact, so that the order of the samples does not matter.
    return math.fsum(weights * distances) / math.fsum(weights)


def _checked(main_entailment: ArrayLike) -> FloatArray:
    checked = as_floats(main_entailment, what="main_entailment")
    if checked.ndim != 3 or checked.shape[1:] != (2, 3) or not checked.size:  # noqa: PLR2004 - three axes
        msg = f"expected (m, 2, 3) main_entailment, m >= 1, got shape {checked.shape}"
        raise InputError(msg)
    sums = checked.sum(axis=2)
    if checked.min() < -_SLACK or np.abs(sums - 1).max() > _SLACK:
        msg = "expected main_entailment of probabilities that add up to 1"
        raise InputError(msg)
    return checked.clip(0.0, 1.0)


def _shares(texts: Sequence[str], m: int) -> FloatArray:
    """Return 1 over how often each text is there."""
    if isinstance(texts, str) or len(texts) != m:
        msg = f"expected {m} texts, got {len(texts)}"
        raise InputError(msg)
    counts = Counter(texts)
    return np.array([1 / counts[text] for text in texts])


def _semantic_density(inputs: MethodInputs) -> float:
    logprobs, answers = given(inputs.sample_mean_logprobs), given(inputs.answers)
    # The samples come last, whether or not the delivered answer is a member.
    samples = answers[len(answers) - len(logprobs) :]
    return semantic_density(given(inputs.main_entailment), logprobs, texts=samples)


SEMANTIC_DENSITY = FunctionMethod(
    name="semantic_density",
    source="Qiu and Miikkulainen 2024, Semantic Density",
    function=_semantic_density,
    limits=Between(0.0, 1.0),
    needs=frozenset({"main_entailment", "sample_mean_logprobs", "answers"}),
    default_similarity="nli",
    white_box=True,
)
"""1 less the semantic density of the delivered answer among its samples."""
