"""Refusals on a langchain-core that has a word for them.

``ModelRefusalError`` and the refusal block came with 1.7.5. What the project installs
may be older, so this version gets a folder of its own, before the rest on the path.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.8.1"
REFUSAL = "I would rather not say."


def newer_core() -> Path:
    """Return the folder with that version in it, installed once."""
    folder = ROOT / ".cache" / f"langchain-core-{VERSION}"
    if (folder / "langchain_core").is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    package = f"langchain-core=={VERSION}"
    options = ["--quiet", "--no-deps", "--retries", "1", "--target", str(unfinished)]
    pip = subprocess.run(  # noqa: S603 - every word of it is above
        [sys.executable, "-m", "pip", "install", *options, package],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if pip.returncode:
        last = pip.stderr.strip().splitlines()[-1:] or ["pip failed"]
        pytest.skip(f"{package} cannot be installed here: {last[0]}")
    unfinished.rename(folder)
    return folder


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    path = os.pathsep.join([str(newer_core()), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.support.newer_core"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_runs_on_the_newer_version(facts: dict[str, Any]) -> None:
    assert facts["version"] == VERSION


def test_a_withheld_answer_raises_a_model_refusal_error(facts: dict[str, Any]) -> None:
    assert facts["raise"] == {
        "is_model_refusal": True,
        "is_model_error": True,
        "is_retryable": False,
        "threshold": 0.1,
        "after_pickling": [True, True],
        "leaks": [],
        "fallback": "from the backup",
        "fallback_of_model": "from the backup",
    }


@pytest.mark.parametrize(
    "way", ["invoke", "ainvoke", "astream", "chat model", "another provider"]
)
def test_a_refusal_is_a_refusal_block_and_readable(
    facts: dict[str, Any], way: str
) -> None:
    found = facts["refuse"][way]
    assert found == {
        "type": "AIMessageChunk" if way == "astream" else "ai",
        "text": REFUSAL,
        "refusals": [REFUSAL],
        "known": True,
        "leaks": [],
    }


def test_a_later_turn_can_send_a_refusal_back(facts: dict[str, Any]) -> None:
    assert facts["sent_back"] == {"role": "assistant", "content": REFUSAL}
