"""What the server is configured with: its policies, and the keys that may use them."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from snne_guard.errors import ConfigurationError
from snne_guard.openai.client import GuardOptions
from snne_guard.types import OnError, OnUncertain, Prices, Schedule, ToolCalls

__all__ = ["Access", "KeyTable", "ServerConfig", "load_config", "requires_keys"]


class _Table(BaseModel):
    """A table of the file: no further names, and no ``"5"`` for 5."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PriceOptions(_Table):
    """What a million tokens cost, as ``Prices``."""

    prompt: float
    completion: float
    cached: float | None = None


class PolicyOptions(_Table):
    """The options of one guard; those of ``guard_client`` that are plain data."""

    n: int = 5
    threshold: float | list[float] | None = None
    calibration: str | None = None
    on_uncertain: OnUncertain = "flag"
    fallback: str | None = None
    refusal: str | None = None
    on_error: OnError = "uncertain"
    method: str = "auto"
    similarity: str | None = None
    temperature: float = 1.0
    tool_calls: ToolCalls = "skip"
    min_samples: int | None = None
    schedule: Schedule = "concurrent"
    timeout: float | None = None
    sample_timeout: float | None = None
    max_concurrency: int | None = None
    sample_rate: float = 1.0
    prices: PriceOptions | None = None
    self_check: bool = False
    views: list[str] = []
    spans: bool | str = False
    span_threshold: float | None = None

    def guard_options(self, folder: Path) -> GuardOptions:
        """Return what ``guard_client`` takes.

        Args:
            folder: Where a calibration's path starts.
        """
        options: Any = self.model_dump(exclude_unset=True)
        if isinstance(self.threshold, list):
            options["threshold"] = tuple(self.threshold)
        if self.calibration is not None:
            options["calibration"] = folder / self.calibration
        if self.prices is not None:
            options["prices"] = Prices(**options["prices"])
        given: GuardOptions = options
        return given


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
    """Everything that ``serve`` is told; ``load_config`` reads it from a file.

    Attributes:
        upstream: Address of the API that answers, ``/v1`` included.
        host: Address to listen on; without keys only one of this machine.
        port: Port to listen on.
        admin_port: Port of 127.0.0.1 for the live page and metrics where there are
            keys.
        cors_origins: Origins of the web pages that may call; ``*``: all.
        max_requests_at_once: How many calls may be in flight; more get status 429.
        max_body: Bytes that the body of a guarded request may have.
        show_texts: Whether the live page shows questions and answers.
        policies: Options of a guard by name. The first is the default; none: one that
            is called ``default`` and has the guard's own defaults.
        keys: Who may call, by name; none: everybody on this machine.
        folder: Where relative paths start.
    """

    upstream: Annotated[str, Field(pattern=r"^https?://[^/?#@]+[^?#@]*$")]
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8484
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    cors_origins: list[str] = []
    max_requests_at_once: Annotated[int, Field(ge=1)] = 200
    max_body: Annotated[int, Field(ge=1)] = 32 * 2**20
    show_texts: bool = False
    policies: dict[str, PolicyOptions] = {}
    keys: dict[str, KeyOptions] = {}
    folder: Path = Path()


def load_config(
    file: str | PathLike[str] | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    **settings: object,
) -> ServerConfig:
    """Return the settings of a TOML file, with others laid over them.

    Args:
        file: Where it is; None: there are only the others.
        policy: Options for every policy.
        **settings: Fields of ``ServerConfig``; None: as the file says.

    Raises:
        ConfigurationError: A name is unknown or a value makes no sense.
        OSError: The file cannot be read.
    """
    fields: dict[str, Any] = {} if file is None else _read(Path(file))
    fields |= {name: value for name, value in settings.items() if value is not None}
    fields["folder"] = Path(file or ".").parent
    over = {name: value for name, value in (policy or {}).items() if value is not None}
    policies = fields.get("policies") or {"default": {}}
    if isinstance(policies, dict):
        fields["policies"] = {
            name: {**options, **over} if isinstance(options, dict) else options
            for name, options in policies.items()
        }
    try:
        config = ServerConfig(**fields)
    except ValidationError as error:
        # Without the input: somebody may have put a key where its hash belongs.
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False)
        ]
        place = f"{file}: " if file is not None else ""
        raise ConfigurationError(place + "; ".join(faults)) from None
    _check_keys(config)
    return config


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{file} is no TOML: {error}"
        raise ConfigurationError(msg) from error


def _check_keys(config: ServerConfig) -> None:
    hashes: dict[str, str] = {}
    for name, key in config.keys.items():
        unknown = [policy for policy in key.policies if policy not in config.policies]
        if unknown:
            msg = f"key {name} names a policy that there is not: {', '.join(unknown)}"
            raise ConfigurationError(msg)
        if key.sha256.lower() == hashlib.sha256().hexdigest():
            msg = f"key {name} has the sha256 of nothing: was the key there?"
            raise ConfigurationError(msg)
        other = hashes.setdefault(key.sha256.lower(), name)
        if other != name:
            msg = f"keys {other} and {name} have the same sha256"
            raise ConfigurationError(msg)


def requires_keys(host: str) -> bool:
    """Return whether others than this machine reach a server that listens there."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a request may do.

    Attributes:
        policies: Names of the policies that it may use, its default first.
        files: Whether it may use ``/v1/files``.
        authorization: The header that goes up; None: none does.
        own_key: Whether that is the server's key and not the client's.
    """

    policies: tuple[str, ...]
    files: bool = True
    authorization: str | None = field(default=None, repr=False)
    own_key: bool = False

    @property
    def secret(self) -> str | None:
        """The server's own key of the upstream, None where the client's goes up."""
        if not self.own_key:
            return None
        return (self.authorization or "").removeprefix("Bearer ")


class KeyTable:
    """Who may call.

    Args:
        config: Names the keys.
        environment: Where the upstream's keys are.

    Raises:
        ConfigurationError: A variable that a key names is not set, or the server would
            listen to others without a table.
    """

    def __init__(
        self, config: ServerConfig, environment: Mapping[str, str] = os.environ
    ) -> None:
        if requires_keys(config.host) and not config.keys:
            msg = (
                f"listening on {config.host} lets others in, so the file needs a table "
                "[keys.NAME] for each key; without one, listen on 127.0.0.1"
            )
            raise ConfigurationError(msg)
        self._anyone = None if config.keys else tuple(config.policies)
        self._accesses = [
            (bytes.fromhex(key.sha256), _access(name, key, environment))
            for name, key in config.keys.items()
        ]

    def access(self, authorization: Sequence[str]) -> Access | None:
        """Return what a request may do, None where its key is unknown.

        Args:
            authorization: Its headers of that name.
        """
        given = authorization[0] if len(authorization) == 1 else None
        if self._anyone is not None:
            return Access(policies=self._anyone, authorization=given)
        scheme, _, key = (given or "").partition(" ")
        # As it came: headers are read as Latin-1.
        digest = hashlib.sha256(key.strip().encode("latin-1", "replace")).digest()
        # All are compared, so that the time tells nothing of which one it is.
        matching = [
            access
            for known, access in self._accesses
            if hmac.compare_digest(known, digest)
        ]
        return matching[0] if matching and scheme.lower() == "bearer" else None


def _access(name: str, key: KeyOptions, environment: Mapping[str, str]) -> Access:
    authorization = None
    if key.upstream_key is not None:
        secret = environment.get(key.upstream_key, "").strip()
        if not secret:
            msg = f"key {name} needs the environment variable {key.upstream_key}"
            raise ConfigurationError(msg)
        authorization = f"Bearer {secret}"
    return Access(
        policies=tuple(key.policies),
        files=key.files,
        authorization=authorization,
        own_key=True,
    )
