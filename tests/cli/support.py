"""Running commands in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from snne_guard.cli.app import app


def run(*arguments: object, keys: str | None = None) -> Result:
    """Run ``snne-guard`` with arguments and what is typed at it."""
    return CliRunner().invoke(app, [str(one) for one in arguments], input=keys)
