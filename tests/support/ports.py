"""A port for a server that cannot say which one it was given."""

from __future__ import annotations

import secrets
import socket

__all__ = ["free_port"]

_LOW, _HIGH = 15_000, 32_000
"""Below those that systems give to clients, and to servers that ask for any."""


def free_port() -> int:
    """Return a port of 127.0.0.1 at which nobody listens.

    It stays free for the seconds until a server has started: nobody is given it who did
    not ask for it.
    """
    while True:
        port = _LOW + secrets.randbelow(_HIGH - _LOW)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
