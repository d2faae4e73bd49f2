"""The process of ``snne-guard serve``: its ports, and its signals."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable
from socket import socket
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from snne_guard.engine.tasks import in_thread
from snne_guard.errors import ConfigurationError, SnneGuardError
from snne_guard.server.app import GuardServer
from snne_guard.server.config import ServerConfig
from snne_guard.server.errors import place_of
from snne_guard.server.logs import configure_logs

_log = logging.getLogger("snne_guard.server")


def run(
    config: ServerConfig, *, reload: Callable[[], ServerConfig] | None = None
) -> None:
    """Serve until SIGTERM or Ctrl-C; calls in flight end first, unless asked twice.

    SIGHUP reads the configuration anew, SIGUSR1 opens the decision log anew.
    """
    configure_logs(config.log_format, config.log_level)
    guard = GuardServer(config)
    if config.admin_port is not None:
        host = config.admin_host or "127.0.0.1"
        admin = _Server(guard, guard.admin(), host, config.admin_port)
        thread = threading.Thread(target=admin.run, daemon=True)
        thread.start()
        while not admin.started:
            thread.join(0.02)
            if not thread.is_alive():
                msg = f"cannot listen on the admin port {host}:{config.admin_port}"
                raise ConfigurationError(msg)
    server = _Server(guard, guard.api(), config.host, config.port, reload=reload)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # uvicorn raises it again at its end
    for name in ("SIGHUP", "SIGUSR1"):
        if hasattr(signal, name):  # Windows has neither
            signal.signal(getattr(signal, name), server.note)
    server.run()


class _Server(uvicorn.Server):
    """A server that drains before it stops, and does between what signals ask for.

    Handlers only note a signal, since one may come while a lock is held.
    """

    def __init__(
        self,
        guard: GuardServer,
        app: Starlette,
        host: str,
        port: int,
        *,
        reload: Callable[[], ServerConfig] | None = None,
    ) -> None:
        self._guard, self._reload = guard, reload
        self._asked: list[int] = []
        self._stop_at: float | None = None
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http="h11",  # one parser, whatever is installed
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,  # longer than proxies keep a connection
                timeout_graceful_shutdown=60,  # for calls in flight
            )
        )

    def note(self, number: int, _: FrameType | None) -> None:
        """Remember a signal for the next tick."""
        self._asked.append(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """Stop: on SIGTERM after a while, on Ctrl-C now, the second time at once."""
        again = self._guard.health.stopping
        self._guard.health.stopping = True
        self._captured_signals.append(sig)
        if again:
            self.should_exit = self.force_exit = True
        elif sig == signal.SIGTERM and self.started:
            self._stop_at = time.monotonic() + self._guard.config.drain_seconds
        else:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Do what signals have asked for; return whether to stop."""
        while self._asked:
            if self._asked.pop(0) == signal.SIGHUP:
                await in_thread(self._read_anew)
            elif self._guard.decisions is not None:
                await in_thread(self._guard.decisions.reopen)
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Wait for calls in flight; the live page's event streams end."""
        self._guard.metrics.closed = True
        waiting = asyncio.ensure_future(super().shutdown(sockets))
        while not waiting.done():
            if self.force_exit:
                # From Python 3.12 on, a closed server waits for its connections.
                await self._cancel_calls()
            await asyncio.wait([waiting], timeout=0.1)
        await waiting
        if self.force_exit:  # else nothing is left, and the last line has been done
            await self._cancel_calls()
            await self.lifespan.shutdown()

    async def _cancel_calls(self) -> None:
        if tasks := set(self.server_state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1)

    def _read_anew(self) -> None:
        if self._reload is None:
            _log.error("SIGHUP has no effect: there is no --config to read anew")
            return
        try:
            self._guard.reload(self._reload())
        except (SnneGuardError, OSError) as error:
            _log.error("the old configuration stays: %s", error)
        except Exception as error:  # noqa: BLE001 - a file must not end the server
            _log.error("the old configuration stays: %s", place_of(error))
        else:
            _log.info("the configuration was read anew")
