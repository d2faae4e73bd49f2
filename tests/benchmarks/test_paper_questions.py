"""The paper's prompts, letter for letter, and which questions are asked."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.paper.data_sets import DATA_SETS
from benchmarks.paper.prompts import STOP, Shot, examples
from benchmarks.paper.questions import choose
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Question

CLOSED_BOOK = ("squad", "triviaqa", "nq_open", "bioasq")
BRIEF = "Answer the following question as briefly as possible.\n"
TEXTS = {
    "xsum": (
        "Here's the text and it's short one-sentence summary.\n\nText:\nOnce.\n\n"
        "Summary (one sentence):\n"
    ),
    "aeslc": (
        "Write a short subject line for the email. Output only the subject line "
        "itself.\n\nEmail:\nOnce.\n\nSubject line:\n"
    ),
    "wmt14_de_en": (
        "Here is a sentence in German language and its translation in English "
        "language.\n\nOriginal:\nOnce.\nTranslation:\n"
    ),
    "wmt14_fr_en": (
        "Here is a sentence in French language and its translation in English "
        "language.\n\nOriginal:\nOnce.\nTranslation:\n"
    ),
}


def question(text: str, *answers: str, context: str | None = None) -> Question:
    return Question(id=text, question=text, answers=answers, context=context)


ONCE = question("Once.")
STORY = question("How many?", "3", context="He has 3")
SHOTS = [question("Who?", "I", "me"), question("What {x}?", "{y}", context="No.")]
WITH_SHOTS = (
    f"{BRIEF}Question: Who?\nAnswer: I\n\nQuestion: What {{x}}?\nAnswer: {{y}}\n\n"
    "Question: Why?\nAnswer:"
)
WITH_STORY = (
    f"{BRIEF}Context: He has 3\nQuestion: How many?\nAnswer: 3\n\n"
    "Context: {0}\nQuestion: And now?\nAnswer:"
)
WHY = question("Why?", "so", context="Never shown.")


@pytest.mark.parametrize(
    ("name", "asked", "shots", "prompt"),
    [
        *((name, WHY, SHOTS, WITH_SHOTS) for name in CLOSED_BOOK),
        *((name, ONCE, [], prompt) for name, prompt in TEXTS.items()),
        ("svamp", question("And now?", context="{0}"), [STORY], WITH_STORY),
    ],
)
def test_prompts(name: str, asked: Question, shots: Any, prompt: str) -> None:
    assert DATA_SETS[name].prompt.render(asked, shots=shots) == prompt


def test_examples_of_p_true_are_those_of_farquhar_et_al() -> None:
    end = "Is the possible answer:\nA) True\nB) False\nThe possible answer is:"
    shots = [
        Shot(question="2 + 2?", answer="5", samples=["4 "], correct=False),
        Shot(question="1 + 1?", answer="2", correct=True),
    ]
    assert examples(shots) == (
        f"Question: 2 + 2?\nBrainstormed Answers: 5 \n4 \nPossible answer: 5\n{end} B\n"
        f"Question: 1 + 1?\nBrainstormed Answers: 2 \nPossible answer: 2\n{end} A"
    )


def test_settings_of_the_paper() -> None:
    found = {name: (one.max_tokens, one.seed) for name, one in DATA_SETS.items()}
    assert found == {
        **dict.fromkeys((*CLOSED_BOOK, "svamp"), (50, 10)),
        "xsum": (56, 42),
        "aeslc": (31, 42),
        **dict.fromkeys(("wmt14_de_en", "wmt14_fr_en"), (107, 42)),
    }
    assert STOP == ("\n\n\n\n", "\n\n\n", "\n\n", "\n", "Question:", "Context:")


def test_a_file_serves_for_examples_and_questions(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"q{n}",
            "question": f"What is {n}",
            "answers": [str(n)],
            "context": "No",
        }
        for n in range(20)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = choose("nq_open", file=file, p_true_shots=3)
    shots = random.Random(10).sample(range(20), 5)  # noqa: S311 - as the authors draw
    prompt = BRIEF + "".join(f"Question: What is {n}?\nAnswer: {n}\n\n" for n in shots)
    first = found.questions[0]
    assert first.extra["prompt"] == f"{prompt}Question: {first.question}\nAnswer:"
    assert (first.question[-1], first.context) == ("?", None)
    assert (len(found.questions), len(found.for_p_true)) == (12, 3)
    ids = [one.id for one in (*found.questions, *found.for_p_true)]
    assert {*ids} | {f"q{n}" for n in shots} == {f"q{n}" for n in range(20)}
    few = choose("nq_open", file=file, limit=4, p_true_shots=3)
    assert few.questions == found.questions[:4]


ROWS: dict[str, list[dict[str, Any]]] = {
    "svamp": [
        {"ID": f"{n}", "Body": f"He has {n}", "Question": "How many?", "Answer": n}
        for n in range(9)
    ],
    "bioasq": [
        {"id": f"{n}", "body": f"Which {n}?", "exact_answer": [[f"A{n}", "B"], "C"]}
        for n in range(30)
    ],
}


def test_rows_as_the_hub_has_them(tmp_path: Path) -> None:
    file = tmp_path / "svamp.json"
    file.write_text(json.dumps({"test": ROWS["svamp"][:3], "train": ROWS["svamp"][3:]}))
    found = choose("svamp", file=file).questions
    assert {one.id for one in found} == {"0", "1", "2"}
    end = f"Context: {found[0].context}\nQuestion: How many?\nAnswer:"
    assert str(found[0].extra["prompt"]).endswith(end)


def test_bioasq_is_divided(tmp_path: Path) -> None:
    file = tmp_path / "training11b.json"
    file.write_text(json.dumps({"questions": ROWS["bioasq"]}))
    found = choose("bioasq", file=file).questions
    order = np.random.default_rng(10).permutation(30)
    assert {one.id for one in found} == {str(n) for n in order[:24]}
    assert found[0].answers == (f"A{found[0].id}", "C")


def test_the_hub_is_asked_for_one_split(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load_dataset(*args: Any, **options: Any) -> list[dict[str, Any]]:
        asked.append((*args, options["split"], options["streaming"]))
        return [{"translation": {"de": "Satz.", "en": "Sentence."}}]

    hub = SimpleNamespace(load_dataset=load_dataset)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    [only] = choose("wmt14_de_en").questions
    assert asked == [("wmt/wmt14", "de-en", "test", True)]
    assert (only.question, only.answers) == ("Satz.", ("Sentence.",))
    with pytest.raises(ConfigurationError, match="--file"):
        choose("bioasq")
