"""The limits that a threshold relies on: no value outside, and both are reached."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers import FunctionMethod
from snne_guard.scorers.entropy import DSE, NE, NUM_SET, SE
from snne_guard.scorers.lex_sim import LEX_SIM
from snne_guard.scorers.limits import Between
from snne_guard.scorers.luq import LUQ, LUQ_PAIR
from snne_guard.scorers.spectral import DEG, ECCEN, SUM_EIGV
from snne_guard.scorers.vote import VOTE_SHARE
from snne_guard.types import FloatArray, MethodInputs
from tests.support.graphs import clusterings, logprobs, similarities
from tests.support.known_answers import MEAN_LOGPROBS, NLI, SIMILARITY

ON_CLUSTERS = (SE, DSE, NUM_SET, VOTE_SHARE)
ON_MATRICES = (LEX_SIM, SUM_EIGV, DEG, ECCEN)
ON_ENTAILMENT = (LUQ, LUQ_PAIR)
BOUNDED = (*ON_CLUSTERS, *ON_MATRICES, *ON_ENTAILMENT)
ALL = (*BOUNDED, NE)


def named(method: Any) -> str:
    return str(method.name)


def unseen(n: int) -> FloatArray:
    """What stands for a matrix that no method may look at."""
    return np.full((n, n), math.nan)


def of_clusters(clusters: list[int], values: list[float] | None = None) -> MethodInputs:
    return MethodInputs(
        similarity=unseen(len(clusters)),
        cluster_ids=np.array(clusters, dtype=np.intp),
        mean_logprobs=np.array(values or [-1.0] * len(clusters)),
    )


def of_entailment(n: int, probabilities: tuple[float, float, float]) -> MethodInputs:
    return MethodInputs(
        similarity=unseen(n), entailment=np.full((n, n, 3), probabilities)
    )


@pytest.mark.parametrize(
    ("method", "limits"),
    [
        (SE, (0.0, math.log(5))),
        (DSE, (0.0, math.log(5))),
        (NUM_SET, (1.0, 5.0)),
        (VOTE_SHARE, (0.0, 0.8)),
        (LEX_SIM, (-1.0, 0.0)),
        (SUM_EIGV, (1.0, 5.0)),
        (DEG, (0.0, 4.0)),
        (ECCEN, (0.0, 2.0)),
        (LUQ, (0.0, 1.0)),
        (LUQ_PAIR, (0.0, 1.0)),
        (NE, None),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_limits_of_five_answers(method: FunctionMethod, limits: Any) -> None:
    assert method.bounds(5) == limits
    assert method.bounds(5, tau=0.1) == limits


@pytest.mark.parametrize("method", BOUNDED, ids=named)
def test_no_answers_have_no_limits(method: FunctionMethod) -> None:
    with pytest.raises(InputError, match="n to be at least 1, got 0"):
        method.bounds(0)


@pytest.mark.parametrize("method", ON_CLUSTERS, ids=named)
@given(clusters=clusterings(), data=st.data())
def test_clusters_stay_within(
    method: FunctionMethod, clusters: list[int], data: st.DataObject
) -> None:
    check(method, of_clusters(clusters, data.draw(logprobs(len(clusters)))))


@pytest.mark.parametrize("method", ON_MATRICES, ids=named)
@given(matrix=similarities())
def test_matrices_stay_within(method: FunctionMethod, matrix: FloatArray) -> None:
    check(method, MethodInputs(similarity=matrix))


@pytest.mark.parametrize("method", ON_ENTAILMENT, ids=named)
@given(shares=st.lists(st.floats(0, 1), min_size=9, max_size=9))
def test_entailment_stays_within(method: FunctionMethod, shares: list[float]) -> None:
    entailed = np.array(shares).reshape(3, 3)
    neutral = (1 - entailed) / 3
    table = np.stack([1 - entailed - neutral, neutral, entailed], axis=2)

    check(method, MethodInputs(similarity=unseen(3), entailment=table))


def check(method: FunctionMethod, inputs: MethodInputs) -> None:
    n = len(inputs.similarity)
    value = method.compute(inputs)
    limits = method.bounds(n)

    assert limits is not None
    assert limits[0] - 1e-9 <= value <= limits[1] + 1e-9
    u = method.uncertainty(value, n)
    assert (u is None) == (n == 1)
    assert u is None or 0 <= u <= 1


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("method", BOUNDED, ids=named)
def test_both_limits_are_reached(method: FunctionMethod, n: int) -> None:
    if method in ON_CLUSTERS:
        alike, different = of_clusters([0] * n), of_clusters(list(range(n)))
    elif method in ON_MATRICES:
        alike = MethodInputs(similarity=np.ones((n, n)))
        different = MethodInputs(similarity=np.eye(n))
    else:
        alike, different = of_entailment(n, (0, 0, 1)), of_entailment(n, (1, 0, 0))

    assert method.uncertainty(method.compute(alike), n) == 0.0
    assert method.uncertainty(method.compute(different), n) == pytest.approx(1.0)


KNOWN = {
    "se": 0.6040274869132107,
    "dse": 0.5004024235381879,
    "ne": 0.529615,
    "num_set": 2.0,
    "vote_share": 0.2,
    "lex_sim": -0.64304,
    "sum_eigv": 1.4669111388871263,
    "deg": 1.42784,
    "eccen": 1.0003912276086184,
    "luq": 0.1950864389970528,
    "luq_pair": 0.08524572642262458,
}


@pytest.mark.parametrize("method", ALL, ids=named)
def test_each_takes_what_it_says_that_it_needs(method: FunctionMethod) -> None:
    everything: dict[str, Any] = {
        "similarity": SIMILARITY,
        "mean_logprobs": MEAN_LOGPROBS,
        "cluster_ids": np.array([0, 0, 0, 1, 0], dtype=np.intp),
        "entailment": NLI,
    }
    needed = {name: everything[name] for name in method.needs}
    inputs = MethodInputs(**{"similarity": unseen(5), **needed})

    value = method.compute(inputs)

    assert value == pytest.approx(KNOWN[method.name], abs=1e-9)
    assert isinstance(value, float)
    for need in method.needs - {"similarity"}:
        without = {name: needed[name] for name in needed if name != need}
        with pytest.raises(InputError, match=f"expected {need} for method"):
            method.compute(MethodInputs(**{"similarity": unseen(5), **without}))


@pytest.mark.parametrize("method", ALL, ids=named)
def test_each_survives_pickling_and_names_its_source(method: FunctionMethod) -> None:
    assert pickle.loads(pickle.dumps(method)) == method  # noqa: S301 - ours
    assert "20" in method.source
    assert method.white_box == ("mean_logprobs" in method.needs)


def test_a_limit_is_a_number_or_a_function_of_n() -> None:
    assert Between(-1.0, math.sqrt)(4, tau=3.0) == (-1.0, 2.0)
