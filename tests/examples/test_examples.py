"""The example programs and notebooks run, offline, and show what they are there for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import MissingExtraError
from snne_guard.langchain.embedded import embedded_server_url
from tests.frameworks.support import framework

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = EXAMPLES / "notebooks"

# The model draws at random: what an answer says and what becomes of it may differ.
REFUSAL = "I am not certain enough of the answer"
ANSWER = f"The chemical symbol for gold|{REFUSAL}"
DECIDED = r"^(accept|refuse) \d"
RECORD = "'decision': '(accept|refuse)'"
SCORED = (r"^1 0\.00$", r"^2 1\.00$")
SHOWN = {
    "agent.py": (
        r"decision unscored, reasons \['tool_calls'\]",
        r"grounded [01]\.",
        "tool runs: 1",
    ),
    "calibrated.py": ("With 90% confidence", REFUSAL),
    "chain.py": ("Au", REFUSAL),
    "fields.py": (r"^/phone  .* \d\.\d\d", "^to a person:"),
    "openai_client.py": ("'decision': 'accept'", "'decision': 'refuse'"),
    "rag.py": (
        "sources: library.txt",
        "searches: 1",
        "replies compared: 5",
        r"grounded: [01]\.",
    ),
    "second_opinion.py": (r"Istanbul \| with a second opinion: .*flag",),
    "spans.py": ("said by", "grounded", r"\[\?\]"),
    "frameworks/with_dask.py": SCORED,
    "frameworks/with_dspy.py": (DECIDED,),
    "frameworks/with_haystack.py": (ANSWER, DECIDED),
    "frameworks/with_llama_index.py": (ANSWER, RECORD, r"\[\('(accept|flag)', [01]"),
    "frameworks/with_openai_agents.py": (ANSWER, DECIDED),
    "frameworks/with_pydantic_ai.py": (ANSWER, RECORD),
    "frameworks/with_pyspark.py": SCORED,
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
    assert programs == set(SHOWN)


@pytest.fixture(scope="module")
def _served() -> None:
    try:
        embedded_server_url()
    except MissingExtraError as error:
        if os.environ.get("SNNE_GUARD_REQUIRE_EMBEDDED") == "1":
            raise
        pytest.skip(str(error))


@pytest.mark.usefixtures("_served")
@pytest.mark.parametrize("name", cases())
def test_a_program_shows_what_it_is_for(name: str, tmp_path: Path) -> None:
    if name.startswith("frameworks/"):
        module = Path(name).stem.removeprefix("with_").removeprefix("openai_")
        framework(module)
    telemetry = {"HAYSTACK_TELEMETRY_ENABLED": "False"}
    program = [sys.executable, "-W", "ignore", EXAMPLES / name]
    printed = run(program, tmp_path, PYTHONIOENCODING="utf-8", **telemetry)
    for pattern in SHOWN[name]:
        assert re.search(pattern, printed, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.iterdir()))
def test_a_notebook_runs(name: str) -> None:
    execute = Path(sys.executable).with_name("jupyter-execute")
    run(
        [execute, "--timeout=300", "--kernel_name=python3", NOTEBOOKS / name], NOTEBOOKS
    )


def run(command: list[Any], folder: Path, **environment: str) -> str:
    """Run a command in a folder, which must end well; return what it prints."""
    done = subprocess.run(  # noqa: S603 - this environment's programs, our files
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
