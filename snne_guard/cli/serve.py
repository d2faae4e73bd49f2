"""``snne-guard serve``: the guard as a server for clients in any language."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

if TYPE_CHECKING:
    from snne_guard.server import ServerConfig


def _env(name: str, help_: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = Option(envvar=f"SNNE_GUARD_{name}", help=help_)
    return option


def serve(
    *,
    config: Annotated[
        Path | None, _env("CONFIG", "File with policies and keys.")
    ] = None,
    upstream: Annotated[str | None, _env("UPSTREAM", "Base URL, with /v1.")] = None,
    host: Annotated[str | None, _env("HOST", "Address to listen on.")] = None,
    port: Annotated[int | None, _env("PORT", "Port to listen on; 8484.")] = None,
    admin_host: Annotated[
        str | None, _env("ADMIN_HOST", "Address of the page.")
    ] = None,
    admin_port: Annotated[int | None, _env("ADMIN_PORT", "Page and metrics.")] = None,
    cors_origin: Annotated[
        list[str] | None,
        _env("CORS_ORIGIN", "Origin of a web page that may call. Repeatable."),
    ] = None,
    n: Annotated[int | None, _env("N", "Calls to the model; 5 by default.")] = None,
    threshold: Annotated[
        float | None, _env("THRESHOLD", "Largest u to accept.")
    ] = None,
    on_uncertain: Annotated[
        str | None, _env("ON_UNCERTAIN", "flag, refuse, fallback or raise.")
    ] = None,
    fallback: Annotated[
        str | None, _env("FALLBACK", "Model that answers in place, in every policy.")
    ] = None,
    decision_log: Annotated[
        str | None, _env("DECISION_LOG", "A line a call; - is standard output.")
    ] = None,
    log_texts: Annotated[
        bool, Option("--log-texts", help="Log prompts and answers there, too.")
    ] = False,
    log_format: Annotated[str | None, _env("LOG_FORMAT", "text or json.")] = None,
    log_level: Annotated[
        str | None, _env("LOG_LEVEL", "debug, info, warning or error; info by default.")
    ] = None,
    ready_upstream: Annotated[
        bool, Option("--ready-upstream", help="Let /ready ask the upstream, too.")
    ] = False,
    drain_seconds: Annotated[
        float | None,
        _env("DRAIN_SECONDS", "How long calls are taken after SIGTERM; 5."),
    ] = None,
    show_texts: Annotated[
        bool, Option("--show-texts", help="Show texts on the live page.")
    ] = False,
    check: Annotated[
        bool, Option("--check", help="Print what each key may do, and exit.")
    ] = False,
) -> None:
    """Guard every client of an OpenAI-compatible API.

    The server speaks that API and stands in front of it. Point a client's base URL at
    http://127.0.0.1:8484/v1. Options take precedence over the environment
    (SNNE_GUARD_UPSTREAM, ...), and both over the file, which SIGHUP reads anew.

    Exit status: 0 the server was stopped; 2 wrong usage.
    """
    from snne_guard.server import create_app, load_config

    load = partial(
        load_config,
        config,
        policy={"n": n, "threshold": threshold}
        | {"on_uncertain": on_uncertain, "fallback": fallback},
        upstream=upstream,
        host=host,
        port=port,
        admin_host=admin_host,
        admin_port=admin_port,
        cors_origins=cors_origin or None,
        decision_log=decision_log,
        log_texts=log_texts or None,
        log_format=log_format,
        log_level=log_level,
        ready_upstream=ready_upstream or None,
        drain_seconds=drain_seconds,
        show_texts=show_texts or None,
    )
    settings = load()
    if check:
        create_app(settings)
        for line in _summary(settings):
            typer.echo(line)
        return
    from snne_guard.server.process import run

    run(settings, reload=None if config is None else load)


def _summary(config: ServerConfig) -> Iterator[str]:
    yield f"upstream {config.upstream}"
    yield f"listens on {config.host}:{config.port}"
    for name, policy in config.policies.items():
        options = ", ".join(f"{option} = {value}" for option, value in policy.items())
        yield f"policy {name}: {options or 'defaults'}"
    for name, key in config.keys.items():
        first, *others = key.policies
        policies = ", ".join([f"{first} (default)", *others])
        given = key.upstream_key
        upstream = f"upstream key from {given}" if given else "no upstream key"
        files = "files" if key.files else "no files"
        yield f"key {name}: {policies}; {upstream}; {files}"
    if not config.keys:
        every = ", ".join(config.policies)
        yield f"no keys: everybody on this machine may use {every}"
