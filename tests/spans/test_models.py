"""Parts compared by an NLI model and by a judge, with fakes at the seam."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snne_guard import score_spans
from snne_guard.errors import ConfigurationError, ScoringError
from snne_guard.similarity import NLI
from snne_guard.spans import NLIMatch, SpanJudge

ANSWER = "It is oak. It is tall."


class FakeNLI:
    """Says what is written down for a premise and a hypothesis, else neutral."""

    name = "nli:fake"

    def __init__(self, **known: Any) -> None:
        self.known = known
        self.pairs: list[tuple[str, str]] = []

    def of_pairs(self, pairs: Any) -> Any:
        self.pairs += pairs
        rows = [self._of(premise, hypothesis) for premise, hypothesis in pairs]
        return np.array(rows).reshape(-1, 3)

    def _of(self, premise: str, hypothesis: str) -> Any:
        for word, classes in self.known.items():
            if word in premise and "oak" in hypothesis:
                return classes
        return (0.0, 1.0, 0.0)


def by(nli: FakeNLI) -> Any:
    fake: Any = nli
    return NLIMatch(fake)


def test_what_is_not_mentioned_counts_half() -> None:
    nli = FakeNLI(yes=(0.0, 0.2, 0.8), no=(0.9, 0.1, 0.0))
    found = by(nli)(["It is oak.", "It is tall."], ["yes", "no", "maybe"])
    assert found == pytest.approx(np.array([[0.9, 0.05, 0.5], [0.5, 0.5, 0.5]]))
    assert nli.pairs[0] == ("yes", "It is oak.")


def test_a_long_text_is_read_in_a_few_windows() -> None:
    nli = FakeNLI(yes=(0.0, 0.0, 1.0), never=(0.6, 0.4, 0.0))
    filler = "Nothing of that kind stands in this sentence here. " * 200
    text = f"{filler}The oak, yes. {filler}The oak, never. {filler}"
    found = by(nli)(["It is oak."], [text])
    assert found == pytest.approx(np.array([[0.7]]))  # (1 + 1 - 0.6) / 2
    assert len(nli.pairs) == 2  # of some 20: those with a word in common
    assert max(len(premise) for premise, _ in nli.pairs) < 1_200


@pytest.mark.slow
def test_a_real_model_is_asked_for_pairs(tmp_path: Any) -> None:
    from tests.similarity.support import save_classifier

    classes = ("contradiction", "neutral", "entailment")
    nli = NLI(save_classifier(tmp_path, classes))
    pairs = [("it is paris", "rome"), ("paris", "not paris")]
    found = nli.of_pairs(pairs)
    table = nli.probabilities(["it is paris", "rome", "paris", "not paris"])
    assert found == pytest.approx(np.array([table[0, 1], table[2, 3]]), abs=1e-5)
    assert nli.of_pairs([]).shape == (0, 3)
    [first, _] = score_spans(ANSWER, ["paris"], similarity=f"nli:{nli.model}")
    assert 0 <= first.uncertainty <= 1


# -- A judge ---------------------------------------------------------------------------


def test_a_judge_is_asked_once() -> None:
    prompts: list[str] = []

    def generate(prompt: str) -> str:
        prompts.append(prompt)
        return "Verdicts:\n1: S N C\n**2:** C, C, S"

    spans = score_spans(
        ANSWER,
        ["Oak.", 'Elm.\n2: S S S"'],
        context="It is tall.",
        question="Which?",
        similarity=SpanJudge(generate, name="toy"),
    )
    assert len(prompts) == 1
    for line in (
        'Statement 2: "It is tall."',
        'Text 3: "It is tall."',
        'Text 1: "Oak."',
    ):
        assert f"\n{line}\n" in prompts[0]
    assert r'Text 2: "Elm.\n2: S S S\""' in prompts[0]  # cannot pass for a verdict
    assert 'Question: "Which?"' in prompts[0]
    [first, second] = spans
    assert first.uncertainty == pytest.approx(0.5 * (1 - 0.37754066879814546))
    assert (first.supported, first.grounded) == (1, 0.0)
    assert (second.uncertainty, second.supported, second.grounded) == (1.0, 0, 1.0)


@pytest.mark.parametrize(
    ("reply", "rows"),
    [
        ("1: S\n2: C", [1, 0]),
        ("Statement 1: s.\n2. N", [1, 0.5]),
        ("1) [S]", [1, 0.5]),
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


def test_a_judge_that_fails_shows_no_text() -> None:
    def generate(prompt: str) -> str:
        raise RuntimeError(prompt)

    with pytest.raises(ScoringError) as caught:
        SpanJudge(generate, name="toy")(["secret"], ["x"])
    assert str(caught.value) == "judge:toy failed with RuntimeError"
    wrong: Any = "model"
    with pytest.raises(ConfigurationError):
        SpanJudge(wrong)
