"""How a judge's reply is read: a verdict where there is one, else none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.similarity.judge import read_verdict

CLEAR = {
    "entailment": "entailment",
    " Entailment.\n": "entailment",
    "**Contradiction**": "contradiction",
    "Verdict: neutral": "neutral",
    "- neutral": "neutral",
    "The answer is: `entailment`.": "entailment",
    "Reply 1 contradicts reply 2.": "contradiction",
    "Reply 1 entails reply 2.": "entailment",
    '{"verdict": "neutral"}': "neutral",
    "<think>Perhaps neutral? No, contradiction.</think>\n\nentailment": "entailment",
    "neutral\n\nReply 2 may be right, but it does not follow.": "neutral",
    "Reply 1 says Paris, so it is not neutral.\n\nVerdict: entailment": "entailment",
    "contradictory": "contradiction",
    "'neutral'": "neutral",
    "\u201cEntailment\u201d": "entailment",
}
UNCLEAR = [
    "",
    "   \n",
    "I know.",  # there is no "no" in "know"
    "I do not know.",
    "no",
    "not entailment",
    "No entailment.",
    "This isn't entailment.",
    "This isn\u2019t a contradiction",
    "neither entailment nor contradiction",
    "entailment or neutral",
    "It would be entailment if reply 1 named the city.",
    "entailment, contradiction, neutral",
    "entailmentally neutralised",
    "non-contradiction",
    "Answer: not neutral",
    "A long text that names neutral once, and then goes on for many words to say much.",
    "yes",
    "<think>entailment</think>",
]


@pytest.mark.parametrize(("reply", "verdict"), CLEAR.items())
def test_a_clear_reply(reply: str, verdict: str) -> None:
    assert read_verdict(reply) == verdict


@pytest.mark.parametrize("reply", UNCLEAR)
def test_a_reply_that_is_not_clear(reply: str) -> None:
    assert read_verdict(reply) == "unclear"


@given(st.text(st.characters(categories=["L", "P", "Z"]), max_size=60))
def test_without_a_word_of_a_verdict_there_is_none(text: str) -> None:
    if not any(stem in text.lower() for stem in ("entail", "contradict", "neutral")):
        assert read_verdict(text) == "unclear"
