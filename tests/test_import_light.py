"""Importing the package is light: no framework, no tensor library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("langchain", "langchain_core", "langchain_openai", "torch", "transformers")


@pytest.mark.parametrize(
    "statement",
    [
        "import snne_guard",
        "import snne_guard; snne_guard.score",
        "import snne_guard; snne_guard.score(['Paris', 'Paris.', 'Lyon'])",
        "import snne_guard.similarity",
        "from snne_guard import Assessment, Score, UncertainAnswerError",
        "from snne_guard import OpenAIGuard, OpenAISampler, AsyncOpenAIGuard",
    ],
)
def test_no_heavy_module_is_loaded(statement: str) -> None:
    program = (
        f"import sys\n{statement}\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - this interpreter, a fixed program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"
