"""From graded answers to a guarded chain: a threshold with a promise.

python examples/calibrated.py

The promise rests on 200 recorded answers beside this program: calibration/README.md
tells of them. The first 20 are drawn once more here, to show how.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from snne_guard import Assessment, SNNEGuard
from snne_guard.cli import build_app
from snne_guard.langchain.embedded import embedded_model

FOLDER = Path(__file__).parent / "calibration"
QUESTIONS, RECORDING = FOLDER / "questions.jsonl", FOLDER / "recording.jsonl"
INSTRUCTION = "Answer in one short sentence."
DRAWN = (
    *("--system", INSTRUCTION, "--samples", "4", "--temperature", "0.5"),
    *("--max-tokens", "48", "--stop", r"\n", "--stop", ".", "--seed", "7"),
)
ASKED = (
    ("The clinic in Barr was founded by Ilse Grau.", "Who founded the clinic in Barr?"),
    ("The ski lift in Umber is steep.", "When did the ski lift in Umber open?"),
    ("The queen of Sarn was fond of music.", "When was the queen of Sarn born?"),
    # A mistake that this model makes every time passes: one of the promised 20 %.
    ("The canal was dug in 1720. It was filled in 1904.", "When was the canal dug?"),
)


class Last:
    """An observer that keeps the last assessment."""

    assessment: Assessment

    def on_assessment(self, assessment: Assessment) -> None:
        self.assessment = assessment


def snne_guard(*words: object) -> None:
    """Run a command in this process, so that the embedded model starts only once."""
    status = build_app()([str(word) for word in words], standalone_mode=False)
    if status:
        sys.exit(status)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


with TemporaryDirectory() as folder:
    live, made = Path(folder) / "live.jsonl", Path(folder) / "guard.json"
    snne_guard("record", QUESTIONS, "--output", live, "--limit", "20", *DRAWN)
    drawn, recorded = rows(live), rows(RECORDING)
    same = [row["settings"] == recorded[0]["settings"] for row in drawn]
    print(f"drawn now: {len(drawn)}, as recorded: {sum(same)}")

    snne_guard(
        *("calibrate", RECORDING, "--error-rate", "0.2", "--grader", "contains"),
        *("--out", made),
    )
    model = embedded_model(temperature=0, max_tokens=48, stop=["\n", "."], seed=7)
    last = Last()
    guard = SNNEGuard.from_calibration(
        model, made, on_uncertain="refuse", observers=[last]
    )

prompt = ChatPromptTemplate.from_messages(
    [("system", INSTRUCTION), ("user", "Context: {context}\n\nQuestion: {question}")]
)
chain = prompt | guard | StrOutputParser()
for context, question in ASKED:
    print(f"{context} {question}")
    print(f"  {chain.invoke({'context': context, 'question': question})}")
    found = last.assessment
    if found.uncertainty is not None and found.p_wrong is not None:
        told = f"u={found.uncertainty:.2f}, wrong with about {found.p_wrong:.0%}"
        print(f"  {found.decision}, certified: {found.certified}, {told}")
