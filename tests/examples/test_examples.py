"""The example programs run, offline, and say what they are there to show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SHOWN = {
    "agent.py": ("decision unscored, reasons ['tool_calls']", "tool runs: 1"),
    "calibrated.py": ("With 90 % confidence", "I am not certain enough of the answer"),
    "chain.py": ("Au", "I am not certain enough of the answer"),
    "fallback.py": ("first model: ", "second model: "),
    "observer.py": ("my-app: u=", "Au"),
    "openai_client.py": ("'decision': 'accept'", "'decision': 'refuse'"),
    "rag.py": ("sources: library.txt", "searches: 1", "replies compared: 5"),
    "spans.py": ("said by", "grounded", "[?]"),
    "streaming.py": ("flag: The| chemical", "refuse: The chemical symbol"),
    "integrations/with_callback.py": ("at once: ", "assessed 2 of 2 runs"),
    "integrations/with_langchain_agent.py": ("a person is asked", "Nobody knows."),
    "integrations/with_langgraph.py": ("a person is asked", "Nobody knows."),
    "integrations/with_otel.py": ("snne_guard", "gen_ai.evaluation.result"),
}
QUICK = ("chain.py",)


def cases() -> list[Any]:
    slow = pytest.mark.slow
    return [
        pytest.param(name, marks=() if name in QUICK else slow, id=name)
        for name in SHOWN
    ]


def test_every_program_is_tested() -> None:
    programs = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py")}
    of_frameworks = {name for name in programs if name.startswith("frameworks/")}
    assert programs - of_frameworks == set(SHOWN)  # tests/frameworks tests the others


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("name", cases())
def test_a_program_shows_what_it_is_for(name: str, tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 - this interpreter, a program of this project
        [sys.executable, "-W", "ignore", EXAMPLES / name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for shown in SHOWN[name]:
        assert shown in done.stdout + done.stderr
