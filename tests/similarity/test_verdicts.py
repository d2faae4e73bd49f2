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
    '{"verdict": "neutral"}': "neutral",
    "<think>Perhaps neutral? No, contradiction.</think>\n\nentailment": "entailment",
    "neutral\n\nReply 2 may be right, but it does not follow.": "neutral",
    "Reply 1 names Paris, and so must reply 2.\n\nVerdict: entailment": "entailment",
    "entailment\n\nBoth name Paris, the capital of France.": "entailment",
    "The final answer is: **entailment**": "entailment",
    "Answer:\nentailment": "entailment",
    "> - entailment": "entailment",
    '"entailment"': "entailment",
    '```json\n{\n  "verdict": "Entailment",\n  "reply": 2\n}\n```': "unclear",
    '```json\n{\n  "verdict": "Entailment"\n}\n```': "entailment",
    '{"reason": "Reply 2 says no more.", "label": "entailment"}': "entailment",
    "It is a contradiction.": "contradiction",
    '{"contradiction": true}': "contradiction",
    "contradictory": "contradiction",
    "'neutral'": "neutral",
    "\u201cEntailment\u201d": "entailment",
}
UNCLEAR = [
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
    "<think>\nentailment",
    "",
    "[]",
    "[" * 100_000,
]
# Each says "no", or not quite "yes"; taken for entailment, it would make two answers
# the same.
NOT_ENTAILED = [
    '{"entailment": false}',
    '{"verdict": "entailment", "correct": false}',
    '{"verdict": "entailment", "probability": 0}',
    '{"verdict": "entailment", "instead": "neutral"}',
    '{"not": "entailment"}',
    "Entailment: 0",
    "entailment 0%",
    "Entailment: no",
    "contradiction: entailment",
    "not: entailment",
    "neutral/contradiction: entailment",
    "It fails to entail reply 2.",
    "Far from entailment.",
    "Entailment is false.",
    "Entailment fails here.",
    "This rules out entailment",
    "Reply 1 entails the negation of reply 2",
    "Reply 1 entails the opposite of reply 2.",
    "Reply 1 entails reply 2.",
    "entailment?",
    "entailment? unlikely",
    "entailment is doubtful",
    "partial entailment",
    "weak entailment",
    "Reply 1 lacks entailment of reply 2",
    "~~entailment~~",
    "entailment (high confidence)",
    "1. entailment\n2. neutral",
    "This is not\nentailment",
    "No.\nentailment",
    "What does not hold here:\n\nentailment",
    "Entailment.\nOn reflection, reply 2 must be wrong, so contradiction.",
    "Entailment.\nOn reflection, it does not follow.",
    "Entailment.\nWait: reply 2 is wrong.",
    "neutral\nentailment",
    "Reply 1 says Paris, so it is not neutral.\n\nVerdict: entailment",
]


@pytest.mark.parametrize(("reply", "verdict"), CLEAR.items())
def test_a_clear_reply(reply: str, verdict: str) -> None:
    assert read_verdict(reply) == verdict


@pytest.mark.parametrize("reply", UNCLEAR)
def test_a_reply_that_is_not_clear(reply: str) -> None:
    assert read_verdict(reply) == "unclear"


@pytest.mark.parametrize("reply", NOT_ENTAILED)
def test_what_is_not_quite_entailment_is_none(reply: str) -> None:
    assert read_verdict(reply) != "entailment"
    assert read_verdict(reply.upper()) != "entailment"


@pytest.mark.parametrize(
    "reply", ["Neutral: 0", "It fails to be neutral.", '{"neutral": 0.1}', "neutral?"]
)
def test_what_is_not_quite_neutral_is_none(reply: str) -> None:
    assert read_verdict(reply) == "unclear"


@given(st.text(st.characters(categories=["L", "P", "Z"]), max_size=60))
def test_without_a_word_of_a_verdict_there_is_none(text: str) -> None:
    if not any(stem in text.lower() for stem in ("entail", "contradict", "neutral")):
        assert read_verdict(text) == "unclear"
