"""DSPy asks a guarded client by the engine of ``examples/frameworks/with_dspy.py``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from snne_guard import UncertainAnswerError
from snne_guard.openai import guard_client
from tests.frameworks.support import QUESTION, framework, part_of_example
from tests.support.openai_server import Scripted, Server, always, split

dspy: Any = framework("dspy")

ANSWERS = [
    json.dumps({"answer": name}) for name in ("Paris", "Rome", "Lyon", "Bonn", "Oslo")
]


@contextmanager
def program(script: Scripted, on_uncertain: Any) -> Iterator[tuple[Any, Any]]:
    """Give a guarded client, and a program of DSPy that asks it."""
    engine = part_of_example("with_dspy.py", "GuardedEngine")
    with Server(script) as server:
        to: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        with openai.OpenAI(**to) as own:
            client = guard_client(own, threshold=0.4, on_uncertain=on_uncertain)
            model = dspy.LM("test-model", engine=engine(client), cache=False)
            with dspy.context(lm=model, adapter=dspy.JSONAdapter()):
                yield client, dspy.Predict("question -> answer")


@pytest.mark.parametrize(
    ("script", "decision"), [(always(ANSWERS[0]), "accept"), (split(*ANSWERS), "flag")]
)
def test_an_answer_is_delivered(script: Scripted, decision: str) -> None:
    with program(script, "flag") as (client, answer):
        with client.assessments() as seen:
            assert answer(question=QUESTION).answer == "Paris"
    assert [one.decision for one in seen] == [decision]


def test_a_withheld_answer_is_an_error() -> None:
    with program(split(*ANSWERS), "raise") as (client, answer):
        with client.assessments() as seen:
            with pytest.raises(dspy.utils.exceptions.LMError) as error:
                answer(question=QUESTION)
    assert isinstance(error.value.__cause__, UncertainAnswerError)
    assert {one.decision for one in seen} == {"refuse"}


async def test_a_stream_comes_in_one_piece() -> None:
    with program(split(*ANSWERS), "flag") as (client, answer):
        with client.assessments() as seen:
            parts = [part async for part in dspy.streamify(answer)(question=QUESTION)]
    texts = [
        part["choices"][0]["delta"]["content"]
        for part in parts
        if not isinstance(part, dspy.Prediction)
    ]
    assert list(filter(None, texts)) == [ANSWERS[0]]
    assert parts[-1].answer == "Paris"
    assert [one.decision for one in seen] == ["flag"]
