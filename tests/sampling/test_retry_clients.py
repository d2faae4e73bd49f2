"""Transport errors of the HTTP clients that providers build on, the real ones."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import aiohttp
import httpx
import pytest
import requests

from snne_guard.sampling.retry import is_transient, perhaps_billed

botocore: Any = import_module("botocore.exceptions")  # it has no types
URL = {"endpoint_url": "http://127.0.0.1"}
STREAM = {"error": "the connection was cut"}


@pytest.mark.parametrize(
    ("error", "billed"),
    [
        (botocore.ReadTimeoutError(**URL), True),
        (botocore.ConnectionClosedError(**URL), True),
        (botocore.ResponseStreamingError(**STREAM), True),
        (botocore.EndpointConnectionError(**URL, error=None), False),
        (botocore.ConnectTimeoutError(**URL), False),
        (requests.exceptions.ReadTimeout(), True),
        (requests.exceptions.ChunkedEncodingError(), True),
        (requests.exceptions.ConnectTimeout(), False),
        (requests.exceptions.ConnectionError(), False),
        (httpx.ReadTimeout(""), True),
        (httpx.RemoteProtocolError(""), True),
        (httpx.ConnectError(""), False),
        (httpx.PoolTimeout(""), False),
        (aiohttp.ServerDisconnectedError(), True),
    ],
    ids=lambda value: type(value).__module__ + "." + type(value).__name__,
)
def test_what_passes_is_told_from_what_was_perhaps_billed(
    error: Exception, billed: bool
) -> None:
    assert is_transient(error)
    assert perhaps_billed(error) is billed


@pytest.mark.parametrize(
    "error",
    [
        requests.exceptions.InvalidURL(),
        botocore.NoCredentialsError(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_no_retry_would_mend_fails_at_once(error: Exception) -> None:
    assert not is_transient(error)
