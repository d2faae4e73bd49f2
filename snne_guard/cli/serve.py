"""``snne-guard serve``: the guard as a server for clients in any language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from snne_guard.server import ServerConfig


def _variable(name: str, help_: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        envvar=f"SNNE_GUARD_{name}", help=help_
    )
    return option


def serve(
    *,
    config: Annotated[
        Path | None, _variable("CONFIG", "TOML file with policies and keys.")
    ] = None,
    upstream: Annotated[
        str | None,
        _variable("UPSTREAM", "Base URL of the API behind the guard, with /v1."),
    ] = None,
    host: Annotated[
        str | None, _variable("HOST", "Address to listen on; 127.0.0.1 by default.")
    ] = None,
    port: Annotated[
        int | None, _variable("PORT", "Port to listen on; 8484 by default.")
    ] = None,
    admin_port: Annotated[
        int | None,
        _variable("ADMIN_PORT", "Local port of the live page, if there are keys."),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        _variable("CORS_ORIGIN", "Origin of a web page that may call. Repeatable."),
    ] = None,
    n: Annotated[
        int | None, _variable("N", "Calls to the model, in every policy; 5 by default.")
    ] = None,
    threshold: Annotated[
        float | None, _variable("THRESHOLD", "Largest u to accept, in every policy.")
    ] = None,
    on_uncertain: Annotated[
        str | None,
        _variable("ON_UNCERTAIN", "flag, refuse, fallback or raise, in every policy."),
    ] = None,
    show_texts: Annotated[
        bool, typer.Option("--show-texts", help="Show texts on the live page.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Print what each key may do, and exit.")
    ] = False,
) -> None:
    """Guard every client of an OpenAI-compatible API.

    The server speaks that API and stands in front of it. Point a client's base URL at
    http://127.0.0.1:8484/v1. Options take precedence over the environment
    (SNNE_GUARD_UPSTREAM, ...), and both over the file.

    Exit status: 0 the server was stopped; 2 wrong usage.
    """
    from snne_guard.server import create_app, load_config

    settings = load_config(
        config,
        policy={"n": n, "threshold": threshold, "on_uncertain": on_uncertain},
        upstream=upstream,
        host=host,
        port=port,
        admin_port=admin_port,
        cors_origins=cors_origin or None,
        show_texts=show_texts or None,
    )
    if check:
        create_app(settings)
        for line in _summary(settings):
            typer.echo(line)
        return
    from snne_guard.server.app import run

    run(settings)


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
