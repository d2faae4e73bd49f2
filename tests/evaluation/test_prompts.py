"""The prompts of the paper, letter for letter, and where replies end."""

from __future__ import annotations

import pytest

from snne_guard.decision.stop_texts import fewest
from snne_guard.evaluation import Question
from snne_guard.evaluation.data.datasets import DATASETS
from snne_guard.evaluation.data.prompts import STOP, Prompt, cut

BRIEF = "Answer the following question as briefly as possible.\n"


def question(text: str, *answers: str, context: str | None = None) -> Question:
    fields = {"question": text, "answers": list(answers), "context": context}
    return Question.from_dict(fields)


@pytest.mark.parametrize("name", ["squad", "triviaqa", "nq_open", "bioasq"])
def test_questions_are_put_from_no_context(name: str) -> None:
    shots = [question("Who?", "I", "me"), question("What {x}?", "{y}", context="No.")]
    assert DATASETS[name].prompt.render(
        question("Why?", "so", context="Never shown."), shots=shots
    ) == (
        f"{BRIEF}Question: Who?\nAnswer: I\n\n"
        "Question: What {x}?\nAnswer: {y}\n\n"
        "Question: Why?\nAnswer:"
    )


def test_svamp_puts_the_body_before_the_question() -> None:
    prompt = DATASETS["svamp"].prompt
    shot = question("How many?", "3", context="He has 3")
    assert prompt.render(question("And now?", context="{0}"), shots=[shot]) == (
        f"{BRIEF}Context: He has 3\nQuestion: How many?\nAnswer: 3\n\n"
        "Context: {0}\nQuestion: And now?\nAnswer:"
    )
    # A file may have both in one text.
    assert prompt.render(question("All?")) == f"{BRIEF}Question: All?\nAnswer:"


XSUM = (
    "Here's the text and it's short one-sentence summary.\n\nText:\nOnce.\n\n"
    "Summary (one sentence):\n"
)
AESLC = (
    "Write a short subject line for the email. Output only the subject line itself.\n\n"
    "Email:\nOnce.\n\nSubject line:\n"
)
WMT14 = (
    "Here is a sentence in {} language and its translation in English language.\n\n"
    "Original:\nOnce.\nTranslation:\n"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("xsum", XSUM),
        ("aeslc", AESLC),
        ("wmt14_de_en", WMT14.format("German")),
        ("wmt14_fr_en", WMT14.format("French")),
    ],
)
def test_texts_are_put_without_shots(name: str, expected: str) -> None:
    assert DATASETS[name].n_shots == 0
    assert DATASETS[name].prompt.render(question("Once.")) == expected


def test_the_settings_are_those_of_the_paper() -> None:
    limits = {name: each.max_tokens for name, each in DATASETS.items()}
    answering = ("squad", "triviaqa", "nq_open", "svamp", "bioasq")
    assert limits == {
        **dict.fromkeys(answering, 50),
        "xsum": 56,
        "aeslc": 31,
        "wmt14_de_en": 107,
        "wmt14_fr_en": 107,
    }
    for name, each in DATASETS.items():
        assert each.name == name
        assert (each.n_shots, each.seed) == ((5, 10) if name in answering else (0, 42))
        assert each.n_questions == 400
        assert (each.temperature, each.answer_temperature) == (1.0, 0.1)
        assert each.stop == (
            "\n\n\n\n",
            "\n\n\n",
            "\n\n",
            "\n",
            "Question:",
            "Context:",
        )


def test_a_shot_without_answers_is_shown_unanswered() -> None:
    prompt = Prompt(item="Q: {question}\nA:")
    assert prompt.render(question("b?"), shots=[question("a?")]) == (
        "Q: a?\nA: \n\nQ: b?\nA:"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris", "Paris"),
        (" Paris \n", "Paris"),
        ("Paris\n\nQuestion: Who?", "Paris"),
        ("Paris. Question: Who? Context: x", "Paris."),
        ("Context: x", ""),
        ("\nParis", ""),
        ("", ""),
    ],
)
def test_a_reply_ends_at_the_first_text_that_ends_it(text: str, expected: str) -> None:
    assert cut(text, STOP) == expected
    assert cut(text, fewest(STOP)) == expected


def test_only_texts_that_change_something_are_sent() -> None:
    assert fewest(STOP) == ("\n", "Question:", "Context:")
    assert fewest(("a", "b", "a")) == ("a", "b")
    assert fewest(()) == ()
    assert cut(" a\nb ", ()) == "a\nb"
