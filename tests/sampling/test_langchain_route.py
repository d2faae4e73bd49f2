"""What a route knows of the models behind it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard.sampling import SamplingPlan
from snne_guard.sampling.langchain_route import Route
from tests.sampling.models import gpt

TOOL = {"type": "function", "function": {"name": "f"}}
FAKE = FakeListChatModel(responses=["x"])


@pytest.mark.parametrize(
    ("model", "openai_like", "wants", "tools", "reasons"),
    [
        (gpt(), True, False, False, ()),
        (gpt(logprobs=True), True, True, False, ()),
        (gpt().bind(logprobs=True), True, True, False, ()),
        (gpt().bind(tools=[TOOL]), True, False, True, ()),
        (FAKE, False, False, False, ("temperature_unset",)),
        (gpt().with_fallbacks([FAKE]), False, False, False, ("temperature_unset",)),
        (gpt().with_fallbacks([gpt(logprobs=True)]), True, True, False, ()),
    ],
)
def test_a_route_knows_what_its_models_can_do(
    model: Any,
    reasons: tuple[str, ...],
    *,
    openai_like: bool,
    wants: bool,
    tools: bool,
) -> None:
    route = Route.of(model, SamplingPlan())
    assert route.supports_batch is openai_like
    assert route.supports_logprobs is openai_like
    assert route.user_wants_logprobs is wants
    assert route.has_tools is tools
    assert route.reasons() == reasons
    assert len(route.copies) == len(route.candidates)


def test_a_call_that_would_do_something_is_not_sampled() -> None:
    search = {"type": "web_search"}
    assert Route.of(gpt(), SamplingPlan()).unsampled({}) is None
    assert Route.of(gpt(), SamplingPlan()).unsampled({"tools": [search]}) == (
        "side_effects"
    )
    second = gpt().with_fallbacks([gpt().bind(tools=[search])])
    assert Route.of(second, SamplingPlan()).unsampled({}) == "side_effects"
