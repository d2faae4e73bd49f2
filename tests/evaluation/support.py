"""Small recordings for tests of the evaluation and of the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from snne_guard.evaluation import Recording
from snne_guard.evaluation.jsonl import beside
from snne_guard.evaluation.recordings import answer_digest

PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples" / "calibration" / "recording.jsonl"

ROWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "question": "Capital of France?",
        "main_answer": "Paris",
        "samples": ["Paris", "Paris", "paris."],
        "answers": ["Paris"],
        "label": 1,
    },
    {
        "id": "2",
        "question": "Year of the disaster?",
        "main_answer": "It was 1912",
        "samples": ["In 1912", "It was 1912", "1912"],
        "answers": ["1912"],
        "label": 1,
    },
    {
        "id": "3",
        "question": "Where is it?",
        "main_answer": "In Lyon, I believe",
        "samples": ["Nice", "Marseille", "Paris"],
        "answers": ["Lille"],
        "label": 0,
    },
    {
        "id": "4",
        "question": "How many?",
        "main_answer": "Seventeen of them",
        "samples": ["Twelve", "Nobody knows", "Seventeen"],
        "answers": ["18"],
        "label": 0,
    },
]


def recording(**fields: Any) -> Recording:
    """Return a recording with the usual fields unless they are given."""
    usual = {"id": "1", "question": "Why?", "main_answer": "a", "samples": ["a", "b"]}
    return Recording.from_dict(usual | fields)


def recordings(rows: list[dict[str, Any]] = ROWS) -> list[Recording]:
    """Return the rows as recordings."""
    return [Recording.from_dict(row) for row in rows]


def write_jsonl(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """Write the rows to a file and return its path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_labels(path: Path, label: int, rows: list[Recording]) -> None:
    """Give the answers of a recording a label, as ``snne-guard label`` does."""
    lines: list[dict[str, Any]] = [
        {"id": row.id, "label": label, "answer": answer_digest(row)} for row in rows
    ]
    write_jsonl(beside(path, "labels"), lines)
