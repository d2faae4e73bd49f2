"""Files of the same questions, each drawn at its own temperature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.evaluation.results import Evaluation
from tests.cli.lines import write
from tests.support.evaluating import by_name, evaluated, questions

SNNE = "snne[rouge_l]"


def drawn(at: float, *, seed: int = 0, **settings: Any) -> list[dict[str, Any]]:
    rows = questions(24, seed=seed)
    return [
        {**row, "settings": {"temperature": at, "seed": seed, **settings}}
        for row in rows
    ]


def together(folder: Path, *files: list[dict[str, Any]], **options: Any) -> Evaluation:
    paths = [write(folder / f"{at}.jsonl", *rows) for at, rows in enumerate(files)]
    options = {"methods": "snne", "ablate": ["temperature"], "draws": 10, **options}
    return evaluate(paths, **options)


def curve(found: Evaluation, at: int = 0) -> tuple[Any, ...]:
    (one,) = [
        each for each in found.sets[at].ablations["temperature"] if each.label == SNNE
    ]
    return one.x, one.y, one.counts, one.metric


def why(found: Evaluation, at: int = 0) -> str:
    (told,) = [each for each in found.sets[at].warnings if "temperature" in each]
    return told


def test_each_set_has_the_auroc_at_every_temperature_on_what_all_ask(
    tmp_path: Path,
) -> None:
    hot, warm, cold = drawn(2.0, seed=1), drawn(1.0, seed=2)[3:], drawn(0.5, seed=3)

    found = together(tmp_path, hot, warm, cold[:20])

    expected: list[float | None] = []
    for rows in (cold, warm, hot):
        shared = [row for row in rows if row["id"] in {f"q{n}" for n in range(3, 20)}]
        alone = evaluated(tmp_path, *shared, methods="snne")
        auroc = by_name(alone)[SNNE].auroc
        assert auroc is not None
        expected.append(auroc.value)
    for at in range(3):
        x, y, counts, metric = curve(found, at)
        assert (x, counts, metric) == ((0.5, 1.0, 2.0), (17,) * 3, "auroc")
        assert y == tuple(expected)
        assert not [told for told in found.sets[at].warnings if "--ablate" in told]


def test_runs_at_one_temperature_are_averaged(tmp_path: Path) -> None:
    one, other, hot = drawn(1.0, seed=1), drawn(1.0, seed=2), drawn(2.0, seed=3)
    found = together(tmp_path, one, other, hot)
    pair = [by_name(found.sets[at])[SNNE].auroc for at in range(2)]
    values = [float((metric and metric.value) or 0) for metric in pair]
    assert curve(found)[1][0] == pytest.approx(sum(values) / 2)


def test_prr_where_no_answer_is_right_or_wrong(tmp_path: Path) -> None:
    files = [drawn(at, seed=int(at)) for at in (1.0, 2.0)]
    for row in (row for rows in files for row in rows):
        row["answers"] = [row["main_answer"].split()[0]]
    found = together(tmp_path, *files, grader="rouge_l", labels_first=False)
    x, y, _, metric = curve(found)
    values = [by_name(one)[SNNE].prr for one in found.sets]
    assert (x, metric) == ((1.0, 2.0), "prr")
    assert y == tuple(value and value.value for value in values)


def other_questions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "question": f"Really, {row['question']}"} for row in rows]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(drawn(1.0, seed=1), id="the same temperature"),
        pytest.param(drawn(2.0, model="other"), id="another model"),
        pytest.param(other_questions(drawn(2.0)), id="other questions, equal ids"),
    ],
)
def test_sets_that_differ_otherwise_are_not_compared(
    tmp_path: Path, other: list[dict[str, Any]]
) -> None:
    found = together(tmp_path, drawn(1.0), other)
    assert not any("temperature" in one.ablations for one in found.sets)
    assert why(found) == (
        "nothing came of --ablate temperature: all was drawn at 1, and no other file "
        "has the same questions under the same settings at another temperature"
    )


def test_a_file_that_does_not_say_is_left_alone(tmp_path: Path) -> None:
    silent = [{**row, "settings": None} for row in drawn(1.0)]
    found = together(tmp_path, silent, drawn(1.0), drawn(2.0), silent)
    assert "the recordings do not say" in why(found)
    assert "the recordings do not say" in why(found, 3)
    assert curve(found, 1)[0] == (1.0, 2.0)


def test_one_class_has_no_metric_at_any_temperature(tmp_path: Path) -> None:
    files = [[{**row, "label": 1} for row in drawn(at)] for at in (1.0, 2.0)]
    found = together(tmp_path, *files)
    assert "there is no AUROC or PRR of any method" in why(found)


def test_a_method_counts_where_every_set_ranks_it(tmp_path: Path) -> None:
    files = [drawn(1.0), drawn(2.0, seed=1)]
    files[0] = [
        {**row, **{key: new[key] for key in ("main_logprobs", "token_logprobs")}}
        | {"main_answer": new["main_answer"], "samples": new["samples"]}
        for row, new in zip(files[0], questions(24, logprobs=True), strict=True)
    ]
    found = together(tmp_path, *files, methods="snne,ne")
    labels = [each.label for each in found.sets[0].ablations["temperature"]]
    assert labels
    assert not [label for label in labels if label.startswith("ne")]
    assert by_name(found.sets[0])["ne"].status == "evaluated"


def test_one_class_in_one_of_two_runs(tmp_path: Path) -> None:
    files = [drawn(1.0), drawn(2.0, seed=1)]
    files.append([{**row, "label": 1} for row in drawn(2.0, seed=2)])
    found = together(tmp_path, *files)
    alone = by_name(found.sets[1])[SNNE].auroc
    assert curve(found)[1][1] == (alone and alone.value)
    assert len(found.sets[2].ablations["temperature"]) == len(
        found.sets[0].ablations["temperature"]
    )


def test_nothing_is_said_where_nobody_asked(tmp_path: Path) -> None:
    found = together(tmp_path, drawn(1.0), drawn(2.0), ablate=[])
    assert not any("temperature" in one.ablations for one in found.sets)
    assert not any("--ablate" in told for one in found.sets for told in one.warnings)
