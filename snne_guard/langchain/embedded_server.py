"""The program that serves the embedded model: ``python embedded_server.py GGUF NAME``.

It prints the address at which it listens, and ends when its standard input does: so it
never outlives the process that has started it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

_SLOTS = 10  # the largest n of one request
_TOKENS_PER_SLOT = 2048
_MOST_THREADS = 8  # more would slow so small a model down


def main(file: str, name: str) -> None:
    """Serve a model until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it
    # Threads that wait for one another by spinning, as they do by default, make a call
    # 20 times slower once anything else wants a core. OpenMP reads this when loaded.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    import xllamacpp

    settings: Any = xllamacpp.CommonParams()
    settings.model.path = file
    settings.model_alias = {name}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_parallel = _SLOTS
    settings.n_ctx = _SLOTS * _TOKENS_PER_SLOT
    settings.verbosity = 1  # errors only
    settings.cache_ram_mib = 0  # else it keeps up to 8 GB of old prompts
    settings.ui = False
    settings.endpoint_slots = False  # it would show the prompts of others
    settings.cors_origins = ""  # no web page may read answers
    for cpu in (settings.cpuparams, settings.cpuparams_batch):
        cpu.n_threads = count_cpus()
        cpu.poll = 0
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)  # noqa: T201 - read by whoever started it
    sys.stdin.read()
    os._exit(0)  # an orderly end would wait for the clients


def count_cpus() -> int:
    """Return the CPUs that this process can use, by affinity and container quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:  # pragma: no cover - systems other than Linux
        count = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        count = min(count, int(quota) // int(period))
    except (OSError, ValueError):  # without a limit the quota is "max"
        pass
    return max(1, min(count, _MOST_THREADS))


if __name__ == "__main__":
    main(*sys.argv[1:])
