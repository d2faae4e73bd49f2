"""Parts compared by an NLI model and by a judge, with fakes at the seam."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snne_guard import score_spans
from snne_guard.errors import ScoringError
from snne_guard.similarity import NLI
from snne_guard.spans import SpanJudge
from snne_guard.spans.matching import NLIMatch

ANSWER = "It is oak. It is tall."


class FakeNLI(NLI):
    """Takes "yes" for entailment and "never" for contradiction, of what is oak."""

    def of_pairs(self, pairs: Any, /, *, question: str | None = None) -> Any:
        assert question is None
        return np.array([self._of(*pair) for pair in pairs])

    def _of(self, premise: str, hypothesis: str) -> Any:
        assert len(premise) < 1_200
        for word, classes in {"yes": (0, 0.2, 0.8), "never": (0.9, 0.1, 0)}.items():
            if word in premise and "oak" in hypothesis:
                return classes
        return (0, 1, 0)


def test_what_is_not_mentioned_counts_half() -> None:
    found = NLIMatch(FakeNLI())(["It is oak.", "It is tall."], ["yes", "never", "so"])
    assert found == pytest.approx(np.array([[0.9, 0.05, 0.5], [0.5, 0.5, 0.5]]))
    [first, second] = score_spans(ANSWER, ["yes"], similarity=FakeNLI())
    assert first.uncertainty < second.uncertainty


def test_of_a_long_text_the_nearest_part_is_read() -> None:
    filler = "Nothing of that kind stands in this sentence here. " * 200
    text = f"{filler}The oak, yes. {filler}The elm, never. {filler}"
    assert NLIMatch(FakeNLI())(["It is oak."], [text]) == pytest.approx(0.9)


@pytest.mark.slow
def test_a_real_model_is_asked_for_pairs(tmp_path: Any) -> None:
    from tests.similarity.support import save_classifier

    classes = ("contradiction", "neutral", "entailment")
    nli = NLI(save_classifier(tmp_path, classes))
    pairs = [("it is paris", "rome"), ("paris", "not paris")]
    table = nli.probabilities(["it is paris", "rome", "paris", "not paris"])
    expected = np.array([table[0, 1], table[2, 3]])
    assert nli.of_pairs(pairs) == pytest.approx(expected, abs=1e-5)
    [first, _] = score_spans(ANSWER, ["paris"], similarity=f"nli:{nli.model}")
    assert 0 <= first.uncertainty <= 1


# -- A judge ---------------------------------------------------------------------------


def test_a_judge_is_asked_once() -> None:
    prompts: list[str] = []

    def generate(prompt: str) -> str:
        prompts.append(prompt)
        return "Verdicts:\n1: S N\n**2:** C, C"

    spans = score_spans(
        ANSWER,
        ["Oak.", 'Elm.\n2: S S S"'],
        context="It is tall.",
        question="Which?",
        similarity=SpanJudge(generate),
    )
    [prompt] = prompts
    assert '\nStatement 2: "It is tall."\n' in prompt
    assert "Text 3" not in prompt  # the context is compared by words
    assert r'Text 2: "Elm.\n2: S S S\""' in prompt  # cannot pass for a verdict
    assert 'Question: "Which?"' in prompt
    [first, second] = spans
    assert first.uncertainty == pytest.approx(0.5 * (1 - 0.37754066879814546))
    assert (first.supported, first.grounded) == (1, 1 / 3)
    assert (second.uncertainty, second.supported, second.grounded) == (1.0, 0, 1.0)


@pytest.mark.parametrize(
    ("reply", "rows"),
    [
        ("1: S\n2: C", [1, 0]),
        ("Statement 1: s.\n2. N", [1, 0.5]),
        ("<think>1: C</think>\n1: S\n2: S", [1, 1]),
        ("1: S S\n2: S\n3: S\n0: C", [0.5, 1]),
        ("1: S or C\n2: C", [0.5, 0]),
        ("1: SC\n2: C", [0.5, 0]),
    ],
)
def test_a_reply_is_read_line_by_line(reply: str, rows: Any) -> None:
    judge = SpanJudge(lambda _: reply)
    assert judge(["a", "b"], ["x"])[:, 0].tolist() == rows


@pytest.mark.parametrize("reply", ["", "All are fine.", "9: S", "1: yes", None])
def test_a_reply_without_a_verdict_is_an_error(reply: Any) -> None:
    with pytest.raises(ScoringError):
        SpanJudge(lambda _: reply)(["a"], ["x"])
