"""Phoenix that is down, slow or refuses: the answer does not know of it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from snne_guard import MissingExtraError, SNNEGuard
from snne_guard_integrations import _extras
from snne_guard_integrations.phoenix import PhoenixObserver
from tests.examples.doc_pages import ROOT
from tests.integrations.conftest import Needs
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.patience import PATIENT
from tests.support.tracing_servers import faulty

PROGRAM = """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
from snne_guard import SNNEGuard
from snne_guard_integrations.phoenix import PhoenixObserver
from tests.support.chat_server import ChatServer, always, chat_openai

tracer = TracerProvider().get_tracer("test")

def ask(guard, name):
    with tracer.start_as_current_span(name):
        print(name, guard.invoke("Who?").text, guard.observer_failures, flush=True)

with ChatServer(always("Paris")) as server:
    observer = PhoenixObserver(sys.argv[1])
    guard = SNNEGuard(chat_openai(server), n=2, method="snne", observers=[observer])
    ask(guard, "parent")
    if sys.argv[2] == "fork":
        child = os.fork()
        if child == 0:
            ask(guard, "child")
            os._exit(0)
        os.waitpid(child, 0)
"""


def run_program(url: str, what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - this interpreter, the program above
        [sys.executable, "-c", PATIENT + PROGRAM, url, what],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(autouse=True)
def packages(needs: Needs) -> None:
    needs("phoenix.client")
    needs("opentelemetry.sdk.trace")


@pytest.mark.parametrize("status", [401, 500])
def test_an_annotation_that_is_refused_is_counted(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with faulty(status) as server:
        check(server.url, "HTTPStatusError", caplog)
    check(server.url, "ConnectError", caplog)  # nobody is there any more


def check(url: str, error: str, caplog: pytest.LogCaptureFixture) -> None:
    """Ask a guard that reports to a URL, and see that only its counter tells."""
    from opentelemetry.sdk.trace import TracerProvider

    caplog.set_level(logging.WARNING, logger="snne_guard")
    tracer = TracerProvider().get_tracer("test")
    with ChatServer(always("Paris")) as chat:
        observers = [PhoenixObserver(url)]
        guard = SNNEGuard(chat_openai(chat), n=2, method="snne", observers=observers)
        with tracer.start_as_current_span("outer"):
            answer = guard.invoke("Who?").text
    assert (answer, guard.observer_failures) == ("Paris", 1)
    assert f"observer PhoenixObserver raised {error}" in caplog.text


def test_a_server_that_hangs_is_counted_and_the_process_ends() -> None:
    with faulty(None) as server:
        done = run_program(server.url, "ask")
    assert (done.returncode, done.stdout) == (0, "parent Paris 1\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_process_has_a_connection_of_its_own() -> None:
    with faulty(200) as server:
        done = run_program(server.url, "fork")
        assert done.stdout == "parent Paris 0\nchild Paris 0\n", done.stderr
        assert server.requests == 2


def test_a_client_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extras, "version", lambda _name: "1.2")
    with pytest.raises(MissingExtraError, match="arize-phoenix-client 3"):
        PhoenixObserver()
