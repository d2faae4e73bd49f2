"""The server's configuration: its policies, and the keys that may use them."""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import httpx2
import openai
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from snne_guard.checks import check_names
from snne_guard.cost import Prices
from snne_guard.errors import ConfigurationError
from snne_guard.files import first_problem
from snne_guard.openai.client import ClientOptions
from snne_guard.openai.other_models import OtherModel

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

_UPSTREAM = re.compile(r"https?://[^/?#@\s]+[^?#@\s]*")


def _is_upstream(url: str) -> str:
    if not _UPSTREAM.fullmatch(url):  # it may hold a password, so it is not quoted
        msg = (
            "expected a URL such as https://api.openai.com/v1, with http:// or "
            "https://, and without a user, a query or a fragment"
        )
        raise ValueError(msg)
    return url


_Upstream = Annotated[str, AfterValidator(_is_upstream)]


class _Table(BaseModel):
    """A table of the file; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyOptions(_Table):
    """What a key may do.

    Attributes:
        sha256: SHA-256 of the key, as hexadecimal digits.
        policies: Names of the policies that it may use; the first is its default.
        upstream_key: Name of the environment variable with the upstream's key.
        files: Whether it may use ``/v1/files``, where every client with the same
            upstream key sees the same files.
    """

    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")]
    policies: Annotated[list[str], Field(min_length=1)]
    upstream_key: str | None = None
    files: bool = False


class ServerConfig(_Table):
    """All settings of ``serve``; ``load_config`` reads them from a file.

    Attributes:
        upstream: Address of the API that answers, ``/v1`` included.
        host: Address to listen on; without keys only one of this machine.
        port: Port to listen on.
        admin_host: Address of the admin port; None: 127.0.0.1.
        admin_port: Port for the live page, metrics and health; None: the live page and
            metrics are where the API is, unless there are keys.
        cors_origins: Origins of the web pages that may call; ``*``: all.
        max_requests_at_once: How many calls may be in flight; more get status 429.
        show_texts: Whether the live page shows questions, answers and samples.
        decision_log: File with a line a call, ``-`` for standard output.
        log_texts: Whether these lines have prompts, answers and samples.
        log_format: How the process logs: ``text`` or ``json``.
        log_level: The least that it logs.
        ready_upstream: Whether ``/ready`` asks the upstream, at most every 5 seconds.
        drain_seconds: How long calls are still taken after SIGTERM, while ``/ready``
            turns new ones away.
        policies: Options of a guard by name. The first is the default; none: one that
            is called ``default`` and has the guard's own defaults.
        keys: Who may call, by name; none: everybody on this machine.
    """

    upstream: _Upstream
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8484
    admin_host: str | None = None
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    cors_origins: list[str] = []
    max_requests_at_once: Annotated[int, Field(ge=1)] = 200
    show_texts: bool = False
    decision_log: str | None = None
    log_texts: bool = False
    log_format: LogFormat = "text"
    log_level: LogLevel = "info"
    ready_upstream: bool = False
    drain_seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    policies: dict[str, dict[str, Any]] = {}
    keys: dict[str, KeyOptions] = {}


def load_config(
    file: str | PathLike[str] | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    **settings: object,
) -> ServerConfig:
    """Return the settings of a TOML file, with overrides.

    Args:
        file: Path of the file; None: there is none.
        policy: Options that override those of every policy; None: as the file says.
        **settings: Fields of ``ServerConfig`` that override the file's; likewise.

    Raises:
        ConfigurationError: The file cannot be read, a name is unknown, or a value
            makes no sense.
    """
    fields: dict[str, Any] = {} if file is None else _read(Path(file))
    fields |= {name: value for name, value in settings.items() if value is not None}
    check_names(fields, ServerConfig.model_fields, what="option of serve:")
    keys = fields.get("keys")
    for name, key in keys.items() if isinstance(keys, dict) else ():
        if isinstance(key, dict):
            check_names(key, KeyOptions.model_fields, what=f"option of key {name}:")
    if "upstream" not in fields:
        msg = "expected an upstream, such as --upstream https://api.openai.com/v1"
        raise ConfigurationError(msg)
    try:
        config = ServerConfig(**fields)
    except ValidationError as error:
        msg = f"{file or 'serve'}: {first_problem(error)}"
        raise ConfigurationError(msg) from None
    for name, needed in (("log_texts", "decision_log"), ("admin_host", "admin_port")):
        if getattr(config, name) and getattr(config, needed) is None:
            msg = f"{name} has no effect without {needed}: give both, or neither"
            raise ConfigurationError(msg)
    over = {name: value for name, value in (policy or {}).items() if value is not None}
    policies = {
        name: {**options, **over}
        for name, options in (config.policies or {"default": {}}).items()
    }
    for name, options in policies.items():
        if options.get("on_uncertain") == "fallback" and "fallback" not in options:
            msg = f'policy {name} needs --fallback MODEL, or fallback = "MODEL"'
            raise ConfigurationError(msg)
    for name, key in config.keys.items():
        check_names(key.policies, policies, what=f"policy of key {name}:")
    return config.model_copy(update={"policies": policies})


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"cannot read {file}, which --config names: {error.strerror}"
        raise ConfigurationError(msg) from None
    except (RecursionError, ValueError) as error:  # also bytes that are no UTF-8
        deep = isinstance(error, RecursionError)
        problem = "it is nested too deeply" if deep else str(error)
        msg = f"{file} is not valid TOML: {problem}"
        raise ConfigurationError(msg) from None


class OtherModelOptions(_Table):
    """Another model of a policy that another API answers for.

    Attributes:
        upstream: Address of that API, ``/v1`` included.
        model: Name of the model.
        key: Name of the environment variable with its key; None: it needs none.
    """

    upstream: _Upstream
    model: str
    key: str | None = None


def guard_options(
    options: Mapping[str, Any], http_client: httpx2.AsyncClient
) -> ClientOptions:
    """Return the options of a policy, read from a file, as ``guard_client`` takes them.

    Raises:
        ConfigurationError: Another model or a price makes no sense, or a key is
            missing.
    """
    given: Any = {**options}  # ``GuardSettings`` checks each
    for name, kind in (("prices", dict), ("other_models", list)):
        if not isinstance(given.get(name, kind()), kind):
            msg = f"expected {name} to be a {'list' if kind is list else 'table'}"
            raise ConfigurationError(msg)
    if isinstance(given.get("threshold"), list):
        given["threshold"] = tuple(given["threshold"])
    if prices := given.get("prices"):
        by_name = all(isinstance(each, dict) for each in prices.values())
        given["prices"] = (
            {name: _prices(each) for name, each in prices.items()}
            if by_name
            else _prices(prices)
        )
    if others := given.get("other_models"):
        given["other_models"] = [
            _other_model(each, http_client) if isinstance(each, dict) else each
            for each in others
        ]
    taken: ClientOptions = given
    return taken


def _prices(given: Mapping[str, Any]) -> Prices:
    check_names(given, get_type_hints(Prices), what="price")
    if not given.keys() >= {"prompt", "completion"}:
        msg = "expected prices to have prompt and completion"
        raise ConfigurationError(msg)
    return Prices(**given)


def _other_model(
    given: Mapping[str, Any], http_client: httpx2.AsyncClient
) -> OtherModel:
    try:
        other = OtherModelOptions(**given)
    except ValidationError as error:
        msg = f"other_models: {first_problem(error)}"
        raise ConfigurationError(msg) from None
    key = "none" if other.key is None else os.environ.get(other.key)
    if not key:
        msg = f"the other model {other.model} needs the variable {other.key}"
        raise ConfigurationError(msg)
    client = openai.AsyncOpenAI(
        base_url=other.upstream, api_key=key, http_client=http_client
    )
    # By the process's variables these would be those of the guarded model.
    client.organization = client.project = None
    client._custom_headers = {}  # noqa: SLF001 - there is no public way
    return OtherModel(client, other.model)


def requires_keys(host: str) -> bool:
    """Tell whether other machines can reach a server that listens there."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True
