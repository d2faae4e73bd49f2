"""What providers see of a recording, and what it costs to ask the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from snne_guard.evaluation.comparison.providers import weighed
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.types import FloatArray
from tests.support.evaluating import by_name, evaluated, questions


def test_the_model_is_asked_about_the_samples_that_count(tmp_path: Path) -> None:
    rows = questions(6, n_samples=4)
    rows[0]["samples"][0] = "  "
    seen: list[tuple[str, ...]] = []

    def provide(recording: Recording) -> float:
        seen.append(recording.samples)
        return -0.1

    one = evaluated(
        tmp_path,
        *rows,
        methods="p_true,lex_sim",
        samples=2,
        include_answer=False,
        providers={"p_true_logprob": provide},
    )

    assert seen[0] == tuple(rows[0]["samples"][1:3])
    assert seen[1:] == [tuple(row["samples"][:2]) for row in rows[1:]]
    methods = by_name(one)
    assert methods["lex_sim[rouge_l]"].calls == 2
    assert methods["p_true"].calls == 2 + 1 + 1


def test_what_is_known_of_all_samples_is_not_varied_with_them(tmp_path: Path) -> None:
    rows = [{**row, "p_true_logprob": -0.1} for row in questions(9)]

    one = evaluated(tmp_path, *rows, methods="p_true,snne", ablate=["samples"])

    labels = {curve.label for curve in one.ablations["samples"]}
    assert "snne[rouge_l]" in labels
    assert "p_true" not in labels


def test_fields_of_each_answer_are_cut_with_the_samples(tmp_path: Path) -> None:
    rows = questions(4, n_samples=3, logprobs=True)
    for row in rows:
        row["samples"][1] = ""
        row["main_tokens"] = row["main_answer"].split()
        row["tokens"] = [text.split() for text in row["samples"]]
        row["token_logprobs"][1] = None
    rows[3]["tokens"] = rows[3]["tokens"][:2]
    asked: list[Any] = []

    class Alike:
        def token_importance(
            self, question: str | None, text: str, tokens: list[str]
        ) -> FloatArray:
            del question
            asked.append((text, tokens))
            raise ValueError(text)

    provide = weighed(Alike())  # type: ignore[arg-type]
    shown: list[Recording] = []

    def seen(recording: Recording) -> Any:
        shown.append(recording)
        return provide(recording)

    evaluated(
        tmp_path, *rows, methods="sar", providers={"token_importance": seen}, samples=2
    )

    assert [one.samples for one in shown[:3]] == [
        (row["samples"][0], row["samples"][2]) for row in rows[:3]
    ]
    assert shown[0].extra["tokens"] == [
        text.split() for text in (rows[0]["samples"][0], rows[0]["samples"][2])
    ]
    assert shown[3].extra["tokens"] == rows[3]["tokens"]
    assert [len(one.token_logprobs or ()) for one in shown] == [2] * 4
