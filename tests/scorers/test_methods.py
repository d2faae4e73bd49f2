"""What holds of every method: numbers, needs, limits, the order of the answers."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS, Method, resolve_method
from tests.scorers.support import Recorded, inputs, same

# Value and u of the four answers in support.py, by an implementation of its own.
NUMBERS: dict[str, tuple[float, float | None]] = {
    "snne": (-1.9249349459714913, 0.7795431695998706),
    "wsnne": (-1.9544507683212355, 0.7397092626376336),
    "se": (0.8181924199114339, 0.590201073349583),
    "dse": (1.0397207708399179, 0.75),
    "ne": (0.65, None),
    "num_set": (3.0, 2 / 3),
    "lex_sim": (-0.2916666666666667, 0.7083333333333333),
    "sum_eigv": (2.245130885375, 0.41504362845833337),
    "deg": (2.125, 0.7083333333333334),
    "eccen": (1.415002137945, 0.8169518652464417),
    "kle_heat": (1.214302415473, 0.8759340364711934),
    "kle_matern": (1.261001601776, 0.9096203787176373),
    "kle_full": (1.110483896814, 0.8010448054603047),
    "luq": (0.5820199275362319, 0.5820199275362319),
    "luq_pair": (0.30024509803921573, 0.30024509803921573),
    "sar": (-6.234330681943343, None),
    "token_sar": (0.65625, None),
    "sent_sar": (-5.941004817805861, None),
    "eigen_score": (-3.0543962818098036, None),
    "p_true": (0.2591817793182821, 0.2591817793182821),
    "semantic_density": (0.3335526426929142, 0.3335526426929142),
    "cocoa_msp": (0.8 / 3, None),
    "cocoa_ppl": (0.4 / 3, None),
    "vote_share": (0.5, 2 / 3),
    "sequence_probability": (0.3934693402873666, 0.3934693402873666),
    "perplexity": (1.2840254166877414, None),
    "answer_length": (3.0, None),
}


@pytest.mark.parametrize("name", METHODS)
def test_numbers(name: str) -> None:
    method = METHODS[name]
    value, u = NUMBERS[name]
    got = method.compute(inputs())
    assert got == pytest.approx(value, abs=1e-9)
    assert method.uncertainty(got, 4) == (None if u is None else pytest.approx(u))


@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_declares_is_what_it_takes(name: str) -> None:
    method = METHODS[name]
    only = {need: getattr(inputs(), need) for need in method.needs}

    assert method.name == name
    assert method.source
    found = method.compute(SimpleNamespace(**only, tau=1.0, anchor=0.0))
    assert found == method.compute(inputs())
    for need in method.needs:
        with pytest.raises(InputError, match=f"expected {need} for method '{name}'"):
            method.compute(inputs(**{need: None}))


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
    if method.bounds(1) is not None:
        assert method.uncertainty(method.compute(inputs()), 1) is None
        with pytest.raises(InputError, match="at least 1"):
            method.bounds(0)


ORDERED = ["luq_pair", "perplexity", "answer_length"]  # the first answer has a place


@given(st.permutations([1, 2, 3]))
def test_the_order_of_the_samples_does_not_matter(order: list[int]) -> None:
    places = [0, *order]
    samples = [place - 1 for place in order]
    before = inputs()
    changed: dict[str, Any] = {
        "answers": tuple((before.answers or ())[place] for place in places),
    }
    for need in ("similarity", "entailment", "graph"):
        changed[need] = getattr(before, need)[np.ix_(places, places)]
    for need in ("mean_logprobs", "cluster_ids", "hidden_states"):
        changed[need] = getattr(before, need)[places]
    for need in ("token_logprobs", "token_importance"):
        changed[need] = tuple(getattr(before, need)[place] for place in places)
    for need in ("main_similarity", "main_entailment", "sample_mean_logprobs"):
        changed[need] = getattr(before, need)[samples]
    after = inputs(**changed)
    for name, method in METHODS.items():
        if name not in ORDERED:
            value = method.compute(before)
            assert method.compute(after) == pytest.approx(value, abs=1e-9), name


def test_names() -> None:
    assert resolve_method("auto", logprobs=True) is METHODS["wsnne"]
    assert resolve_method("auto", logprobs=False) is METHODS["snne"]
    assert resolve_method("se", logprobs=False) is METHODS["se"]
    assert resolve_method(METHODS["se"], logprobs=False) is METHODS["se"]
    with pytest.raises(ConfigurationError, match="got 'sne'"):
        resolve_method("sne", logprobs=True)
    for wrong in (3, None, ["snne"]):
        with pytest.raises(ConfigurationError, match="expected method 'auto', a Met"):
            resolve_method(wrong, logprobs=True)  # type: ignore[arg-type]  # that is the point


def test_what_stands_in_where_log_probabilities_are_missing() -> None:
    assert METHODS["wsnne"].without_logprobs is METHODS["snne"]
    assert METHODS["se"].without_logprobs is METHODS["dse"]
    others = METHODS.keys() - {"wsnne", "se"}
    assert all(METHODS[name].without_logprobs is None for name in others)
    for name in ("wsnne", "se"):
        other = METHODS[name].without_logprobs
        assert other is not None
        assert not other.needs_logprobs
        assert other.bounds(5) == METHODS[name].bounds(5)


def test_defaults() -> None:
    assert METHODS["wsnne"].default_similarity == "content_f1"
    assert METHODS["lex_sim"].default_similarity == "rouge_l"
    assert METHODS["dse"].default_similarity == "nli"
    assert METHODS["wsnne"].anchor("content_f1") == 0.7
    assert METHODS["wsnne"].anchor("rouge_l") == 0
    assert METHODS["lex_sim"].anchor("content_f1") == 0
    assert METHODS["dse"].compares_answers
    assert not METHODS["perplexity"].compares_answers


def test_a_similarity_must_give_what_a_method_needs() -> None:
    for name in ("dse", "luq", "semantic_density"):
        METHODS[name].check_similarity(Recorded(), name="recorded")
        with pytest.raises(ConfigurationError, match="got 'same'"):
            METHODS[name].check_similarity(same, name="same")
    METHODS["kle_heat"].check_similarity(same, name="same")


def test_a_method_of_your_own() -> None:
    spread = Method(
        name="spread",
        source="mine",
        function=lambda f, logprobs, tau: float(np.ptp(f)) * tau + len(logprobs),
        arguments=("similarity", "mean_logprobs"),
        options=("tau",),
        limits=(0.0, lambda n: 2 * n),
    )
    assert spread.needs == {"similarity", "mean_logprobs"}
    assert spread.compute(inputs(tau=2.0)) == 6
    assert spread.uncertainty(6, 4) == 0.75
    assert resolve_method(spread, logprobs=False) is spread


@pytest.mark.parametrize(
    ("field", "need"),
    [
        ("arguments", "vibes"),
        ("arguments", "tau"),
        ("options", "vibes"),
        ("options", "question"),
    ],
)
def test_a_need_that_nobody_can_meet(field: str, need: str) -> None:
    change: Any = {field: (need,)}
    with pytest.raises(ConfigurationError, match=rf"got \['{need}'\] as well"):
        replace(METHODS["snne"], **change)


@pytest.mark.parametrize("n", [10**400, 2**60])
def test_more_answers_than_a_float_can_count(n: int) -> None:
    for name in ("snne", "dse", "num_set", "deg"):
        with pytest.raises(InputError, match="expected n to be a whole number"):
            METHODS[name].bounds(n)
        with pytest.raises(InputError, match="expected n to be a whole number"):
            METHODS[name].uncertainty(0.5, n)
