"""Kernel Language Entropy as it is written down, with nothing done for speed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snne_guard.types import FloatArray

# As an NLI model weighs the edges: three answers alike, one neutral, one opposed.
EDGES5 = [
    [0.0, 2.0, 2.0, 0.5, 0.0],
    [2.0, 0.0, 1.5, 0.5, 0.0],
    [2.0, 1.5, 0.0, 1.0, 0.0],
    [0.5, 0.5, 1.0, 0.0, 0.5],
    [0.0, 0.0, 0.0, 0.5, 0.0],
]
IDS5 = [0, 0, 0, 1, 2]
LOGPROBS5 = [-0.2, -0.7, -0.3, -1.5, -0.9]


def slow_laplacian(weights: Any, *, normalised: bool) -> FloatArray:
    n = len(weights)
    degrees = [sum(weights[i][j] for j in range(n) if j != i) for i in range(n)]
    laplacian = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            value = degrees[i] if i == j else -weights[i][j]
            if normalised:
                scale = math.sqrt(degrees[i])
                value = value / scale / math.sqrt(degrees[j]) if value else 0.0
            laplacian[i, j] = value
    return laplacian


def slow_heat(weights: Any, t: float, *, normalised: bool = False) -> FloatArray:
    """The exponential as a power series, squared again and again."""
    step = -t * slow_laplacian(weights, normalised=normalised) / 1024
    term = result = np.eye(len(step))
    for place in range(1, 20):
        term = term @ step / place
        result = result + term
    for _ in range(10):
        result = result @ result
    return result


def slow_matern(weights: Any, kappa: float, nu: int) -> FloatArray:
    """The power as so many inverses."""
    shifted = slow_laplacian(weights, normalised=False)
    shifted = shifted + np.eye(len(shifted)) * 2 * nu / kappa**2
    result = np.eye(len(shifted))
    for _ in range(nu):
        result = result @ np.linalg.inv(shifted)
    return result


def slow_entropy(kernel: FloatArray) -> float:
    """The definition, with the general eigenvalues that the authors take."""
    total = 0.0
    for value in np.linalg.eigvals(kernel):
        if abs(value) > 1e-8:
            total -= value.real * math.log(value.real)
    return total


def slow_unit(kernel: FloatArray) -> FloatArray:
    n = len(kernel)
    unit = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            unit[i, j] = kernel[i, j] / math.sqrt(kernel[i, i] * kernel[j, j]) / n
    return unit


def slow_shares(ids: list[int], logprobs: list[float]) -> dict[int, float]:
    """The probability of each cluster, in the order of their names."""
    top = max(logprobs)
    likely = [math.exp(value - top) for value in logprobs]
    return {
        name: math.fsum(
            value for value, id_ in zip(likely, ids, strict=True) if id_ == name
        )
        / math.fsum(likely)
        for name in sorted(set(ids))
    }


def slow_semantic_entropy(ids: list[int], logprobs: list[float]) -> float:
    shares = slow_shares(ids, logprobs).values()
    return -math.fsum(share * math.log(share) for share in shares if share > 1e-8)


def slow_between(weights: Any, ids: list[int], *, overwrite: bool) -> FloatArray:
    names = sorted(set(ids))
    sums: dict[tuple[int, int], float] = {}
    for i in range(len(ids)):
        for j in range(i + 1, len(ids)):
            one, other = names.index(ids[i]), names.index(ids[j])
            key = (one, other) if overwrite else (min(one, other), max(one, other))
            sums.setdefault(key, 0.0)
            sums[key] += weights[i][j]
    between = np.zeros((len(names), len(names)))
    for (one, other), weight in sums.items():
        if one != other:
            between[one, other] = between[other, one] = weight
    return between
