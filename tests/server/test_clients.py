"""Clients that others have written, in front of the embedded model."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.support import Running, serving

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.slow

PACKAGES = ("openai@6", "ai@6", "@ai-sdk/openai-compatible@2")
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def model() -> str:
    from snne_guard.langchain.embedded import MODEL_NAME

    return MODEL_NAME


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    from snne_guard.langchain.embedded import embedded_server_url

    policy = {"n": 3, "threshold": 0.5}
    with serving(embedded_server_url(), policy=policy) as found:
        yield found


def test_curl(running: Running, model: str) -> None:
    curl = shutil.which("curl") or pytest.skip("curl is missing")
    body = {"model": model, "messages": QUESTION, "max_tokens": 20, "stream": True}
    url = f"{running.url}/v1/chat/completions"
    command = [curl, "--silent", "--no-buffer", url, "--json", json.dumps(body)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert '"snne_guard"' in done.stdout
    assert done.stdout.endswith("data: [DONE]\n\n")


def test_node(running: Running, model: str, tmp_path: Path) -> None:
    """OpenAI's package and the AI SDK, from the npm registry."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node is missing")
    program = tmp_path / "clients.mjs"
    program.write_bytes(Path(__file__).with_name("clients.mjs").read_bytes())
    install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path)]
    got = subprocess.run([*install, *PACKAGES], capture_output=True, check=False)  # noqa: S603 - ours
    if got.returncode:
        pytest.skip("the packages are not to be had")
    command = [node, str(program), f"{running.url}/v1", model]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen.keys() == {"openai", "openaiStream", "ai", "aiStream"}
    for text, _ in seen.values():
        assert text
    assert {seen[name][1] for name in ("openai", "openaiStream", "ai")} <= {
        "accept",
        "flag",
    }
    assert seen["aiStream"][1] in {"stop", "length"}
