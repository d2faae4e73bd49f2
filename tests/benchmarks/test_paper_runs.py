"""From the questions of a file to tables and ablations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel

from benchmarks.paper import __main__ as program
from benchmarks.paper import draw
from benchmarks.paper.__main__ import main
from benchmarks.paper.ablations import ablate
from benchmarks.paper.tables import compare, format_table
from snne_guard.errors import InputError
from snne_guard.evaluation import Recording, read_recordings

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "recorded_qwen15.jsonl"
ASKED = [
    {"id": f"q{n}", "question": f"What is {n}?", "answers": [str(n)]} for n in range(20)
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ASKED))
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_draw_and_tables(
    questions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given: dict[str, Any] = {}

    def chat_model(name: str, **settings: Any) -> FakeListChatModel:
        given.update(settings, name=name)
        return FakeListChatModel(responses=["3 ", " 3", "4", "12", "5", "3", "4 4"])

    monkeypatch.setattr(draw, "chat_model", chat_model)
    output = tmp_path / "out.jsonl"
    command = ["draw", "triviaqa", "--file", str(questions), "--samples", "2"]
    for limit in ("4", "6"):
        assert main([*command, "--limit", limit, "--output", str(output)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "4 recorded, 0 were there, 0 failed",
        "2 recorded, 4 were there, 0 failed",
    ]
    assert given == {
        "name": "embedded",
        "temperature": 0.1,
        "max_tokens": 50,
        "seed": None,
    }
    drawn = rows(output)
    assert len(drawn) == 6
    assert all(text == text.strip() for row in drawn for text in row["samples"])
    assert drawn[0]["settings"]["dataset"]["name"] == "triviaqa"
    assert drawn[0]["prompt"].startswith("Answer the following question as briefly")
    assert main(["tables", str(output), "--grader", "rouge_l"]) == 0
    table = capsys.readouterr().out
    assert "6 of 6 questions by rouge_l, 2 samples" in table
    assert "| snne[rouge_l_paper] | ." in table
    assert "not ranked: p_true: expected p_true_logprob" in table


@pytest.mark.slow
def test_a_local_model_completes_the_prompt(questions: Path, tmp_path: Path) -> None:
    from snne_guard.huggingface import HuggingFaceModel
    from tests.huggingface.support import make_model, make_tokenizer

    model = HuggingFaceModel(make_model(max_position_embeddings=4096), make_tokenizer())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw, "load", lambda name: model)
        output = tmp_path / "out.jsonl"
        command = ["draw", "squad", "--file", str(questions), "--output", str(output)]
        patch.setattr(program, "P_TRUE_SHOTS", 1)
        command += ["--model", "gemma2-2b", "--samples", "3", "--limit", "2"]
        assert main(command) == 0
        first = output.read_bytes()
        output.unlink()
        assert main(command) == 0
    again = rows(output)
    for row, other in zip(again, map(json.loads, first.splitlines()), strict=True):
        assert row["samples"] == other["samples"]  # the same seed
        assert row["settings"]["model"] == "google/gemma-2-2b-it"
        assert row["settings"]["completion"] is True
        assert row["p_true_logprob"] < 0
        texts = [row["main_answer"], *row["samples"]]
        for text, state in zip(texts, row["hidden_states"], strict=True):
            assert "\n" not in text
            assert text == text.strip()
            assert len(state or []) == (32 if text else 0)
        assert len(row["tokens"][0]) == len(row["token_logprobs"][0])
    assert main(["tables", str(output)]) == 0


def synthetic(*, temperature: float = 1.0, right: float = 0.5) -> list[Recording]:
    """Return questions whose wrong answers have samples that differ."""
    random = np.random.default_rng(1)
    made = []
    for n in range(40):
        wrong = random.random() > right
        sure = 0.3 if wrong else 0.9
        samples = [
            "Paris" if random.random() < sure else f"town {random.integers(99)}"
            for _ in range(10)
        ]
        row = {
            "id": str(n),
            "question": "?",
            "main_answer": "Paris",
            "samples": samples,
            "token_logprobs": [[-0.1]] * 10,
            "label": int(not wrong),
            "settings": {"temperature": temperature},
        }
        made.append(Recording.from_dict(row))
    return made


def figures(table: str, name: str) -> list[float]:
    [row] = [line for line in table.splitlines() if line.startswith(f"| {name} ")]
    return [float(cell) for cell in row.strip("| ").split(" | ")[1:]]


def test_more_samples_find_more() -> None:
    table = ablate("samples", [synthetic()])
    assert table.splitlines()[0] == (
        "| AUROC by samples, 40 questions | 2 | 3 | 5 | 10 |"
    )
    two, *_, ten = figures(table, "snne")
    assert 0.5 < two < ten


def test_tau_and_similarity() -> None:
    table = ablate("tau", [synthetic()], methods=["snne"])
    assert "| 0.1 | 1 | 10 | 100 |" in table
    assert len(figures(table, "snne")) == 4
    names = ["rouge_l_paper", "exact"]
    table = ablate("similarity", [synthetic()], similarities=names, methods=["snne"])
    assert "| rouge_l_paper | exact |" in table


def test_temperatures_rank_the_same_questions() -> None:
    cold, warm = synthetic(temperature=0.5, right=0.9), synthetic()
    table = ablate("temperature", [warm, cold[:30]], methods=["snne"])
    assert "AUROC by temperature, 30 questions | 0.5 | 1 |" in table
    with pytest.raises(InputError, match="another temperature each"):
        ablate("temperature", [warm, warm])


@pytest.mark.skipif(not RECORDED.is_file(), reason="no ../shared/data")
def test_figures_on_recorded_answers() -> None:
    expected = {
        "snne[rouge_l_paper]": 0.754,
        "wsnne[rouge_l_paper]": 0.752,
        "lex_sim[rouge_l_paper]": 0.753,
        "kle_heat[rouge_l_paper]": 0.759,
        "sum_eigv[rouge_l_paper]": 0.741,
        "dse[exact]": 0.621,
    }
    found = compare([*read_recordings(RECORDED)], methods=[*expected])
    assert len(found.ids) == 488
    figures = {row.name: row.metrics["auroc"].value for row in found.ranked}
    assert {name: round(figures[name], 3) for name in expected} == expected


def test_a_table_of_several_sets_has_their_mean() -> None:
    columns = {"a": {"x": 0.5, "y": -0.25}, "b": {"x": 0.7}, "c": {"x": 10.5}}
    assert format_table("M", columns, with_mean=True).splitlines() == [
        "| M | a | b | c | mean |",
        "|---|---|---|---|---|",
        "| x | .500 | .700 | 10.500 | 3.900 ± 5.717 |",
        "| y | -.250 | - | - | - |",
    ]
