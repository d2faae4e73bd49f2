"""A guard on a local model: one batched request, log-probabilities, a seed."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import SNNEGuard, TransformersChatModel
from snne_guard.sampling.huggingface import HuggingFaceModel
from snne_guard.types import SampleEvent
from tests.support.tiny_llama import make_model, make_tokenizer

LLAMA = make_model()
# Many ends, so that replies end by themselves, after ten tokens or so.
LLAMA.generation_config.eos_token_id = list(range(3, 259, 10))
LOCAL = HuggingFaceModel(LLAMA, make_tokenizer(), name="tiny")
SEED = 3


class Counting:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def on_sample_start(self, event: SampleEvent) -> None:
        if event.role == "sample":
            self.asked.append(event.n)


def guarded() -> tuple[SNNEGuard, Counting]:
    counting = Counting()
    chat = TransformersChatModel(LOCAL, seed=SEED, temperature=1, max_tokens=200)
    return SNNEGuard(chat, n=5, observers=[counting]), counting


def check(assessment: Any, counting: Counting) -> None:
    assert counting.asked == [4]
    assert assessment.method == "wsnne"
    assert assessment.n_used == 5
    assert assessment.reasons == ("no_threshold",)
    assert len({sample.text for sample in assessment.samples}) == 4
    assert all(sample.token_logprobs for sample in assessment.samples)
    assert {sample.model for sample in assessment.samples} == {"tiny"}
    cost = assessment.cost
    assert (cost.calls, cost.prompt_tokens) == (2, 2 * 19)
    assert cost.completion_tokens >= sum(
        len(sample.token_logprobs or ()) + 1 for sample in assessment.samples
    )
    assert not cost.lower_bound


def test_samples_come_in_one_request() -> None:
    guard, counting = guarded()
    check(guard.assess("hi"), counting)


async def test_samples_come_in_one_request_of_a_task() -> None:
    guard, counting = guarded()
    check(await guard.aassess("hi"), counting)


def test_the_answer_is_the_users_own() -> None:
    guard, _ = guarded()
    chat = TransformersChatModel(LOCAL, seed=SEED, temperature=1, max_tokens=200)
    bare = chat.invoke("hi")
    answer = guard.invoke("hi")
    assert answer.content == bare.content
    assert "logprobs" not in answer.response_metadata
    assert answer.response_metadata["snne_guard"]["n_used"] == 5
    streamed = [chunk.text for chunk in guard.stream("hi")]
    assert "".join(streamed) == bare.content


def test_a_seed_fixes_the_whole_set() -> None:
    sets = [guarded()[0].assess("hi").samples for _ in range(2)]
    texts = [[sample.text for sample in samples] for samples in sets]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 4


@pytest.mark.parametrize("bound", [{"top_p": 0.9}, {"temperature": 0.1}])
def test_samples_keep_to_their_own_limit(bound: dict[str, Any]) -> None:
    chat = TransformersChatModel(LOCAL, max_tokens=200, seed=1).bind(**bound)
    assessment = SNNEGuard(chat, n=5, sample_max_tokens=2).assess("hi")
    lengths = [len(sample.token_logprobs or ()) for sample in assessment.samples]
    assert max(lengths) <= 2
    assert assessment.answer is not None
    assert len(assessment.answer.token_logprobs or ()) > 2
