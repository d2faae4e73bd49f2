"""The steps of the Dockerfile, taken without docker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.support import key, port_of

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_server_starts_as_in_the_image_and_is_found_healthy(
    tmp_path: Path,
) -> None:
    fields = key("a", upstream_key="OPENAI_API_KEY")
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    config = tmp_path / "serve.toml"
    config.write_text(
        'upstream = "http://127.0.0.1:9/v1"\n[keys.a]\n' + "\n".join(lines)
    )
    variables = dict(re.findall(r"(SNNE_GUARD_\w+)=(\S+)", DOCKERFILE))
    changed = {"SNNE_GUARD_CONFIG": str(config), "SNNE_GUARD_PORT": "0"}
    environment = {**os.environ, **variables, **changed, "OPENAI_API_KEY": "sk-up"}
    start = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    check = re.findall(r"HEALTHCHECK .*CMD (.*)$", DOCKERFILE, re.MULTILINE)
    (command,), (healthy,) = map(json.loads, start), map(json.loads, check)
    assert Path(command[0]).name == "snne-guard"
    command = [sys.executable, "-m", "snne_guard", *command[1:]]
    with subprocess.Popen(  # noqa: S603 - ours
        command, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        port = str(port_of(server))
        asked = [part.replace("8484", port) for part in healthy[1:]]
        subprocess.run([sys.executable, *asked], check=True)  # noqa: S603 - ours
        server.terminate()
        assert server.wait(10) == 0
        with pytest.raises(subprocess.CalledProcessError):
            subprocess.run(  # noqa: S603 - ours
                [sys.executable, *asked], check=True, capture_output=True
            )


def test_the_image_is_run_by_nobody_and_holds_no_more_than_the_package() -> None:
    assert re.search(r"^USER (?!root|0)\S+", DOCKERFILE, re.MULTILINE)
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    names = {line.removeprefix("!") for line in kept if line.startswith("!")}
    assert "*" in kept
    assert all((ROOT / name).exists() for name in names)
    assert not {".env", "tests", ".git"} & names
