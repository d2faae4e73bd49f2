"""The examples of frameworks run on the embedded model, each in its environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from snne_guard.errors import MissingExtraError
from snne_guard.langchain.embedded import embedded_server_url
from tests.frameworks.support import EXAMPLES, framework

# The model draws at random: what an answer says and what becomes of it may differ.
ANSWER = "The chemical symbol for gold|I am not certain enough of the answer"
DECIDED = r"^(accept|refuse) \d"
RECORD = "'decision': '(accept|refuse)'"
SCORED = (r"^1 0\.00$", r"^2 1\.00$")
SHOWN = {
    "with_dask.py": ("dask", SCORED),
    "with_dspy.py": ("dspy", (DECIDED,)),
    "with_haystack.py": ("haystack", (ANSWER, DECIDED)),
    "with_llama_index.py": ("llama_index", (ANSWER, RECORD)),
    "with_openai_agents.py": ("agents", (ANSWER, DECIDED)),
    "with_pydantic_ai.py": ("pydantic_ai", (ANSWER, RECORD)),
    "with_pyspark.py": ("pyspark", SCORED),
}


def test_every_program_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.fixture(scope="module")
def _served() -> None:
    try:
        embedded_server_url()
    except MissingExtraError as error:
        if os.environ.get("SNNE_GUARD_REQUIRE_EMBEDDED") == "1":
            raise
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.usefixtures("_served")
@pytest.mark.parametrize("name", SHOWN)
def test_a_program_shows_what_it_is_for(name: str, tmp_path: Path) -> None:
    module, shown = SHOWN[name]
    framework(module)
    done = subprocess.run(  # noqa: S603 - this interpreter, a program of this project
        [sys.executable, "-W", "ignore", EXAMPLES / name],
        cwd=tmp_path,
        env={**os.environ, "HAYSTACK_TELEMETRY_ENABLED": "False"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for pattern in shown:
        assert re.search(pattern, done.stdout, re.MULTILINE)
