"""Replies that end at certain texts, whether or not the provider saw to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from snne_guard import Sample
from snne_guard.evaluation.data.prompts import STOP
from snne_guard.evaluation.recording.drawn import Drawn
from snne_guard.evaluation.recording.ended import ended
from snne_guard.types import Cost


def reply(text: str, **fields: object) -> Sample:
    given = {"token_logprobs": (-0.5, -0.25), "finish_reason": "stop", **fields}
    return Sample(text=text, **given)  # type: ignore[arg-type]


def test_a_reply_that_ended_there_keeps_everything_but_the_space_around_it() -> None:
    drawn = Drawn(answer=reply(" Paris"), samples=(reply("Lyon "), reply("x")))
    found = ended(drawn, STOP)
    assert found == Drawn(answer=reply("Paris"), samples=(reply("Lyon"), reply("x")))


def test_a_reply_that_went_on_is_cut_and_loses_its_log_probabilities() -> None:
    long = reply("Paris\nQuestion: Who?", finish_reason="length", model="m")
    error = ValueError("x")
    drawn = Drawn(
        answer=long,
        samples=(long, reply("Lyon", token_logprobs=None)),
        reasons=("answer_truncated", "truncated_samples", "mixed_models"),
        cost=Cost(calls=2),
        error=error,
    )
    found = ended(drawn, STOP)
    short = Sample(text="Paris", finish_reason="stop", model="m", misaligned=True)
    assert found.answer == short
    assert found.samples == (short, reply("Lyon", token_logprobs=None))
    assert found.reasons == ("mixed_models", "logprobs_misaligned")
    assert found.cost == Cost(calls=2)
    assert found.error is error


def test_a_reply_without_log_probabilities_has_none_to_lose() -> None:
    found = ended(Drawn(answer=reply("a\nb", token_logprobs=None)), STOP)
    assert found.answer == Sample(text="a", finish_reason="stop")
    assert found.reasons == ()


def test_replies_that_are_still_cut_off_stay_so() -> None:
    long = reply("Paris is", finish_reason="length")
    found = ended(
        Drawn(answer=long, samples=(long,), reasons=("truncated_samples",)), STOP
    )
    assert found.reasons == ("truncated_samples", "answer_truncated")


@pytest.mark.parametrize("text", ["\nParis", "Question: Who?", " "])
def test_what_is_left_of_a_reply_may_be_nothing(text: str) -> None:
    bare = reply(text, token_logprobs=None)
    found = ended(Drawn(answer=bare, samples=(bare,)), STOP)
    assert found.answer is not None
    assert (found.answer.text, found.samples[0].text) == ("", "")
    assert found.reasons == ("answer_empty", "empty_samples")


def test_calls_and_mere_reasoning_are_no_empty_replies() -> None:
    call = reply("", tool_calls='{"a":"\\n"}')
    found = ended(Drawn(answer=call, samples=(reply("", reasoned=True),)), STOP)
    assert found.answer == call
    assert found.reasons == ()


def test_without_an_answer_the_samples_are_cut_all_the_same() -> None:
    found = ended(Drawn(samples=(reply("a\nb"),)), ("b", "\n"))
    assert found.answer is None
    assert found.samples[0].text == "a"


@pytest.mark.parametrize(
    ("tokens", "text", "kept"),
    [
        ((" Par", "is", "\n", "Question"), "Paris", 2),
        (("Par", "is", ".\n\n", "Who"), "Paris.", 3),  # only space is in it besides
        (("\n", "Par", "is", "<|im_end|>"), "Paris", None),  # nothing was cut off
        (("Par", "is", "Question", ":"), "Paris", 2),
        (("Pa", "ri", "s\nQuestion"), "Paris", 0),  # one of them goes on
        (("\ufffd", "\ufffd", "is", "\n"), "Paris", 0),  # nobody knows what they say
    ],
)
def test_the_tokens_of_what_is_left_keep_their_log_probabilities(
    tokens: tuple[str, ...], text: str, kept: int | None
) -> None:
    known = tuple(-float(place) for place in range(len(tokens)))
    long = reply(f"{text}\nQuestion: Who", token_logprobs=known, tokens=tokens)
    if kept is None:
        long = replace(long, text=f"\n{text}")
        assert ended(Drawn(answer=long), ("Question",)).answer == replace(
            long, text=text
        )
        return
    found = ended(Drawn(answer=long, samples=(long,)), STOP)
    for each in (found.answer, *found.samples):
        assert each is not None
        assert each.token_logprobs == (known[:kept] or None)
        assert each.tokens == (tokens[:kept] or None)
    assert found.reasons == (() if kept else ("logprobs_misaligned",))


def test_a_reply_of_which_nothing_is_left_has_no_tokens_either() -> None:
    long = reply("\nParis", tokens=("\nPar", "is"))
    found = ended(Drawn(answer=long), STOP)
    assert found.answer is not None
    assert (found.answer.token_logprobs, found.answer.tokens) == (None, None)
