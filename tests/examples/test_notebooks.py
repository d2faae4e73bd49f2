"""The notebooks run from their folder, offline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
EXECUTE = Path(sys.executable).with_name("jupyter-execute")


@pytest.mark.slow
@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.iterdir()))
def test_a_notebook_runs(name: str) -> None:
    done = subprocess.run(  # noqa: S603 - this environment's program, our notebook
        [EXECUTE, "--timeout=300", "--kernel_name=python3", NOTEBOOKS / name],
        cwd=NOTEBOOKS,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
