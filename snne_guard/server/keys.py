"""Who may call, and what each key may do."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from snne_guard.errors import ConfigurationError
from snne_guard.server.config import KeyOptions, ServerConfig, requires_keys
from snne_guard.server.errors import Fault
from snne_guard.server.records import CURRENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a request may do.

    Attributes:
        policy: The policy that holds for it.
        key: Name of its key, blank where there are no keys.
        files: Whether it may use ``/v1/files``.
        authorization: The header that is sent upstream; None: none is.
        secret: The server's own key for the upstream, blank if it needs none; None if
            the client's key is sent.
    """

    policy: str
    key: str = ""
    files: bool = True
    authorization: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)


class KeyTable:
    """Who may call, and under which policies."""

    def __init__(self, config: ServerConfig) -> None:
        if requires_keys(config.host) and not config.keys:
            where = f"other machines can reach {config.host}"
            msg = f"{where}: make a table [keys.NAME], or listen on 127.0.0.1"
            raise ConfigurationError(msg)
        self._policies = [*config.policies]
        self._keys = [
            (bytes.fromhex(key.sha256), name, key, _upstream_key(name, key))
            for name, key in config.keys.items()
        ]

    def access(self, headers: Headers) -> Access:
        """Return the rights of a request with these headers."""
        authorization = headers.get("authorization")
        if not self._keys:
            policy = _chosen(headers, self._policies)
            return Access(policy=policy, authorization=authorization)
        scheme, _, given = (authorization or "").partition(" ")
        digest = hashlib.sha256(given.strip().encode("latin-1")).digest()  # as it came
        # All are compared, so that the timing does not reveal which one matches.
        matching = [
            (name, key, secret)
            for known, name, key, secret in self._keys
            if hmac.compare_digest(known, digest)
        ]
        # An empty key has a hash, too, and somebody may have put it in the table.
        if scheme.lower() != "bearer" or not given.strip() or not matching:
            message = "the key is missing or unknown"
            raise Fault(401, message, code="invalid_api_key")
        name, key, secret = matching[0]
        CURRENT.get().key = name  # for the log, where the policy is refused
        return Access(
            policy=_chosen(headers, key.policies),
            key=name,
            files=key.files,
            authorization=f"Bearer {secret}" if secret else None,
            secret=secret,
        )


def _upstream_key(name: str, key: KeyOptions) -> str:
    secret = os.environ.get(key.upstream_key or "", "").strip()
    if key.upstream_key is not None and not secret:
        msg = f"key {name} needs the environment variable {key.upstream_key}"
        raise ConfigurationError(msg)
    return secret


def _chosen(headers: Headers, policies: Sequence[str]) -> str:
    """Return the policy that a request asks for, the first if it names none."""
    policy = headers.get("x-snne-guard-policy") or policies[0]
    if policy not in policies:
        message = "this key may not use that policy, or no policy has that name"
        raise Fault(403, message, code="policy_not_allowed")
    return policy
