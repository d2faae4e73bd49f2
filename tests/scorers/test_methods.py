"""What holds of every method: numbers, needs, limits, the order of the answers."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS, resolve_method
from tests.scorers.support import Recorded, inputs, same


@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_declares_is_what_it_takes(name: str) -> None:
    method, built = METHODS[name], inputs()
    given = {need: getattr(built, need) for need in method.needs}
    given |= {"tau": 1.0, "anchor": 0.0}
    assert method.name == name
    assert method.source
    assert method.compute(SimpleNamespace(**given)) == method.compute(built)
    for need in method.needs:
        with pytest.raises(InputError, match=f"expected {need} for method '{name}'"):
            method.compute(SimpleNamespace(**{**given, need: None}))


@pytest.mark.parametrize("name", METHODS)
def test_limits_are_met_by_answers_all_alike_and_all_different(name: str) -> None:
    method = METHODS[name]
    for n in (2, 3, 10):
        limits = method.bounds(n)
        if limits is None:
            assert method.uncertainty(0.5, n) is None
            continue
        low, high = limits
        assert low < high
        assert method.uncertainty(low, n) == 0
        assert method.uncertainty(high, n) == pytest.approx(1)
        with pytest.raises(InputError):
            method.uncertainty(high + 0.1, n)
        with pytest.raises(InputError):
            method.uncertainty(math.nan, n)
    assert method.uncertainty(method.compute(inputs()), 1) is None


@given(st.permutations([1, 2, 3]))
def test_the_order_of_the_samples_does_not_matter(order: list[int]) -> None:
    before, after = inputs(), inputs([0, *order])
    for name in METHODS.keys() - {"luq_pair"}:  # premises come before hypotheses
        value = METHODS[name].compute(before)
        assert METHODS[name].compute(after) == pytest.approx(value, abs=1e-9), name


def test_names() -> None:
    assert resolve_method("auto", logprobs=True) is METHODS["wsnne"]
    assert resolve_method("auto", logprobs=False) is METHODS["snne"]
    assert resolve_method("se", logprobs=False) is METHODS["se"]
    assert resolve_method(METHODS["se"], logprobs=False) is METHODS["se"]
    for wrong in ("sne", None, ["snne"]):
        with pytest.raises(ConfigurationError, match="expected method 'auto', a Met"):
            resolve_method(wrong, logprobs=True)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(("name", "other"), [("wsnne", "snne"), ("se", "dse")])
def test_what_stands_in_where_log_probabilities_are_missing(
    name: str, other: str
) -> None:
    assert METHODS[name].without_logprobs is METHODS[other]
    assert METHODS[name].needs_logprobs
    assert not METHODS[other].needs_logprobs
    assert METHODS[name].bounds(5) == METHODS[other].bounds(5)


def test_the_anchor_of_methods() -> None:
    assert METHODS["wsnne"].anchor("content_f1") == 0.7
    assert METHODS["wsnne"].anchor("rouge_l") == 0
    assert METHODS["lex_sim"].anchor("content_f1") == 0


def test_a_similarity_must_give_what_a_method_needs() -> None:
    for name in ("dse", "luq"):
        METHODS[name].check_similarity(Recorded(), name="recorded")
        with pytest.raises(ConfigurationError, match="got 'same'"):
            METHODS[name].check_similarity(same, name="same")
    METHODS["kle_heat"].check_similarity(same, name="same")
