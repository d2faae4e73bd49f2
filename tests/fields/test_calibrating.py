"""A threshold for fields from recordings that are labelled by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snne_guard import SNNEGuard, score_fields
from snne_guard.errors import InputError
from snne_guard.fields import calibrate_fields
from tests.cli.support import run
from tests.langchain.support import MODEL


def labelled(number: int, **fields: Any) -> dict[str, Any]:
    """An object of a sure field that is right and an unsure one that is wrong."""
    row = {
        "id": f"object-{number}",
        "question": None,
        "main_answer": json.dumps({"a/b": "Bern", "c": number}),
        "samples": [json.dumps({"a/b": "Bern", "c": number + i}) for i in (1, 2, 3)],
        "field_labels": {"/a~1b": 1, "/c": 0},
    }
    return {**row, **fields}


def test_one_field_of_each_object_counts_whatever_the_order() -> None:
    rows = [labelled(number) for number in range(300)]
    threshold = calibrate_fields(rows, alpha=0.1)
    assert threshold.certified
    assert threshold.n_labels == 300
    assert 100 < threshold.n_accepted < 200
    sure, unsure = score_fields(rows[0]["main_answer"], rows[0]["samples"])
    assert sure.uncertainty <= threshold.value < unsure.uncertainty
    turned = [{**row, "field_labels": {"/c": 0, "/a~1b": 1}} for row in rows]
    assert calibrate_fields(turned, alpha=0.1) == threshold


def test_without_enough_labels_every_field_is_marked() -> None:
    rows = [labelled(number) for number in range(5)]
    threshold = calibrate_fields([*rows, labelled(6, field_labels={})], alpha=0.1)
    assert (threshold.value, threshold.n_labels) == (-1.0, 5)
    assert SNNEGuard(MODEL, field_threshold=threshold.value).field_threshold == -1.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"field_labels": {"/d": 1}}, "no field '/d'"),
        ({"field_labels": {"/c": 2}}, "expected 1 or 0 .* got 2"),
        ({"field_labels": {"/c": None}}, "expected 1 or 0 .* got None"),
        ({"field_labels": {}}, "recordings with field_labels, got none"),
        ({"field_labels": [1, 0]}, "by path, got a list"),
        ({"main_answer": "Bern"}, "JSON"),
        ({"samples": []}, "sample"),
    ],
)
def test_labels_that_fit_nothing_are_refused(fields: Any, message: str) -> None:
    rows = [labelled(number, **fields) for number in range(50)]
    with pytest.raises(InputError, match=message):
        calibrate_fields(rows, alpha=0.1)


def test_the_command_writes_it(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "fields.json"
    file.write_text("\n".join(json.dumps(labelled(i)) for i in range(300)))
    found = run("calibrate", file, "--fields", "--error-rate", 0.1, "--out", out)
    assert found.exit_code == 0, found.output
    assert "CERTIFIED\nWith 90% confidence, at most 10% of the accepted fields" in (
        found.stdout
    )
    value = json.loads(out.read_text())["value"]
    assert f"field_threshold={value!r}" in found.stdout
    few = run(*("calibrate", file, "--fields", "--error-rate", 0.001, "--out", out))
    assert few.exit_code == 3
    assert json.loads(out.read_text())["value"] == -1.0
    wrong = run("calibrate", file, "--fields", "--coverage", 0.5, "--out", out)
    assert wrong.exit_code == 2
