"""The texts of tokens: from what a provider says into a recording and out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation.comparison.providers import weighed
from snne_guard.evaluation.recording.drawn import Drawn, as_fields, from_fields
from snne_guard.evaluation.recording.questions import Question
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.evaluation.recording.token_texts import token_texts
from snne_guard.similarity._token_spans import token_spans
from snne_guard.types import FloatArray, Sample
from tests.support.evaluating import by_name, evaluated, questions, row

PARIS = Sample(text="In Paris", token_logprobs=(-1.0, -2.0), tokens=("In", " Paris"))
CALL = Sample(text="", tool_calls="[1]", token_logprobs=(-1.0,), tokens=("x",))
INFINITE = Sample(text="a", token_logprobs=(-np.inf,), tokens=("a",))
ROME = Sample(text="Rome", token_logprobs=(-0.5,), tokens=("Rome",))
ASKED = Question.from_dict({"id": "1", "question": "?", "tokens": [], "main_tokens": 3})


def test_they_are_written_and_read_beside_their_logprobs() -> None:
    drawn = Drawn(answer=PARIS, samples=(ROME, CALL, INFINITE, Sample(text="")))

    fields = as_fields(ASKED, drawn, {})
    again = from_fields(fields)

    assert fields["main_tokens"] == ["In", " Paris"]
    assert fields["tokens"] == [["Rome"], None, None, None]
    assert again.answer is not None
    assert again.answer.tokens == PARIS.tokens
    assert [one.tokens for one in again.samples] == [("Rome",), None, None, None]


def test_there_is_no_field_where_none_is_known() -> None:
    answer = Sample(text="a", token_logprobs=(-1.0,))
    fields = as_fields(ASKED, Drawn(answer=answer, samples=(answer,)), {})
    assert not fields.keys() & {"main_tokens", "tokens"}


def test_what_kind_of_reply_each_was_is_read_back() -> None:
    refused = Sample(text="I cannot", refused=True)
    thought = Sample(text="", reasoned=True)
    drawn = Drawn(answer=PARIS, samples=(refused, CALL, thought, ROME))

    fields = as_fields(ASKED, drawn, {})
    again = from_fields(fields)

    assert fields["drawn"]["kinds"] == [None, "refused", "tool_calls", "reasoned", None]
    assert [one.refused for one in again.samples] == [True, False, False, False]
    assert [one.tool_calls for one in again.samples] == [None, "[1]", None, None]
    assert [one.reasoned for one in again.samples] == [False, False, True, False]
    assert "kinds" not in as_fields(ASKED, Drawn(answer=PARIS), {})["drawn"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tokens": 5}, "of 1 samples, got a number"),
        ({"tokens": [["a"], ["b"]]}, "of 1 samples, got 2"),
        ({"tokens": ["no"]}, '"tokens" to be a list of texts, got a text'),
        ({"main_tokens": [1]}, '"main_tokens" to be a list of texts, got a number'),
    ],
)
def test_fields_of_another_form_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        token_texts(Recording.from_dict(row("q", "no", **fields)))


class Weighs:
    """As long as there are tokens, the first matters most."""

    def token_importance(
        self, question: str | None, text: str, tokens: Any
    ) -> FloatArray:
        del question
        assert "".join(tokens) == text
        return 1 / np.arange(1.0, 1 + len(tokens))


def test_only_answers_that_say_something_must_have_them() -> None:
    provide = weighed(Weighs())
    known = {"main_tokens": ["y", "es"], "tokens": [["no"], None]}

    found = provide(Recording.from_dict(row("q", "no", " ", **known)))

    assert [one.tolist() for one in found] == [[1, 0.5], [1], []]
    assert provide(Recording.from_dict(row("q", "no", "yes", **known))) is None


def test_token_sar_ranks_recordings_with_tokens(tmp_path: Path) -> None:
    rows = questions(6, n_samples=2, logprobs=True)
    for fields in rows:
        fields["main_tokens"] = [fields["main_answer"]]
        fields["tokens"] = [[text] for text in fields["samples"]]
        fields |= {"main_logprobs": [-0.5], "token_logprobs": [[-0.5], [-0.7]]}
    providers = {"token_importance": weighed(Weighs())}

    one = evaluated(tmp_path, *rows, methods="token_sar", providers=providers)
    rows[0]["tokens"] = 5
    other = evaluated(tmp_path, *rows, methods="token_sar", providers=providers)

    assert by_name(one)["token_sar"].status == "evaluated"
    assert "of 2 samples, got a number" in str(by_name(other)["token_sar"].why)


def test_marks_for_space_are_no_part_of_a_token() -> None:
    tokens = ["\u2581In", "\u2581Paris", "\u0120now"]
    assert token_spans("In Paris now", tokens) == [(0, 2), (3, 8), (9, 12)]
