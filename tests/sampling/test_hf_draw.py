"""Draws against the definitions, and against the warpers of ``transformers``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from snne_guard.sampling.hf_draw import draw, sampling_logprobs
from snne_guard.sampling.hf_settings import GenerationSettings

NO_IDS = torch.zeros((1, 0), dtype=torch.long)


def logits_of(seed: int, rows: int = 1, size: int = 40) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn((rows, size), generator=generator)


def warped(logits: torch.Tensor, settings: GenerationSettings) -> torch.Tensor:
    """Do it as ``generate`` does."""
    scores: Any = logits
    if settings.temperature != 1:
        warper: Any = TemperatureLogitsWarper(float(settings.temperature))
        scores = warper(NO_IDS, scores)
    if settings.top_k is not None:
        scores = TopKLogitsWarper(settings.top_k)(NO_IDS, scores)
    if settings.top_p is not None:
        scores = TopPLogitsWarper(settings.top_p)(NO_IDS, scores)
    return torch.log_softmax(scores, dim=-1)


settings_of = st.builds(
    GenerationSettings,
    temperature=st.sampled_from([0.3, 0.7, 1.0, 1.5]),
    top_k=st.sampled_from([None, 1, 3, 10, 100]),
    top_p=st.sampled_from([None, 0.01, 0.5, 0.9, 1.0]),
)


@given(st.integers(0, 1000), settings_of)
def test_the_distribution_is_that_of_transformers(
    seed: int, settings: GenerationSettings
) -> None:
    logits = logits_of(seed)
    mine = sampling_logprobs(torch.log_softmax(logits, dim=-1), [settings])
    torch.testing.assert_close(mine, warped(logits, settings), atol=1e-5, rtol=1e-4)


@given(st.lists(settings_of, min_size=2, max_size=4), st.integers(0, 1000))
def test_each_row_has_settings_of_its_own(
    settings: list[GenerationSettings], seed: int
) -> None:
    own = torch.log_softmax(logits_of(seed, rows=len(settings)), dim=-1)
    together = sampling_logprobs(own, settings)
    for place, each in enumerate(settings):
        alone = sampling_logprobs(own[place : place + 1], [each])
        torch.testing.assert_close(together[place : place + 1], alone)


def test_ties_with_the_last_of_the_top_k_stay() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    settings = GenerationSettings(top_k=2)
    mine = sampling_logprobs(torch.log_softmax(logits, dim=-1), [settings])
    torch.testing.assert_close(mine, warped(logits, settings))
    assert torch.isfinite(mine).tolist() == [[True, True, True, False]]


def test_temperature_zero_takes_the_likeliest() -> None:
    logits = logits_of(5, rows=2)
    settings = [GenerationSettings(temperature=0), GenerationSettings()]
    drawn = draw(logits, settings, [0.999, 0.5])
    own = torch.log_softmax(logits, dim=-1)
    assert drawn.ids[0] == int(logits[0].argmax())
    assert drawn.sampling_logprobs[0] == 0.0
    assert drawn.logprobs[0] == pytest.approx(float(own[0].max()), abs=1e-6)
    assert drawn.sampling_logprobs[1] == drawn.logprobs[1]


@given(st.integers(0, 1000), st.floats(0, 1, exclude_max=True), settings_of)
def test_a_draw_is_the_inverse_of_the_cumulated_probability(
    seed: int, uniform: float, settings: GenerationSettings
) -> None:
    logits = logits_of(seed)
    drawn = draw(logits, [settings], [uniform])
    own = torch.log_softmax(logits, dim=-1)
    logprobs = sampling_logprobs(own, [settings])
    probabilities = logprobs[0].double().exp().numpy()
    cumulated = np.cumsum(probabilities)
    (token,) = drawn.ids
    assert probabilities[token] > 0
    assert cumulated[token] >= uniform * cumulated[-1] - 1e-12
    assert cumulated[token] - probabilities[token] <= uniform * cumulated[-1] + 1e-12
    assert drawn.logprobs == [pytest.approx(float(own[0, token]), abs=1e-6)]
    assert drawn.sampling_logprobs == [pytest.approx(float(logprobs[0, token]))]


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_draw_what_has_a_probability(
    uniform: float,
) -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 1.0, -torch.inf]])
    drawn = draw(logits, [GenerationSettings()], [uniform])
    assert drawn.ids == [1 if uniform == 0 else 3]


def test_half_precision_is_read_as_single() -> None:
    logits = logits_of(3).bfloat16()
    drawn = draw(logits, [GenerationSettings()], [0.4])
    own = torch.log_softmax(logits.float(), dim=-1)
    assert drawn.logprobs == [pytest.approx(float(own[0, drawn.ids[0]]), abs=1e-6)]


def test_draws_are_as_frequent_as_they_are_probable() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0]])
    uniforms = np.random.default_rng(1).random(4000).tolist()
    settings = [GenerationSettings()] * len(uniforms)
    drawn = draw(logits.expand(len(uniforms), -1), settings, uniforms)
    shares = np.bincount(drawn.ids, minlength=3) / len(uniforms)
    expected = torch.softmax(logits[0], dim=-1).numpy()
    assert np.abs(shares - expected).max() < 0.025
