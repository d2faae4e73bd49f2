"""The guard as a server that speaks OpenAI's API, for clients in any language."""

from snne_guard.errors import MissingExtraError

try:
    from snne_guard.server.app import create_app
    from snne_guard.server.config import ServerConfig, load_config
except ModuleNotFoundError as error:
    msg = f"the {error.name} package"
    raise MissingExtraError(msg, extra="server") from error

__all__ = ["ServerConfig", "create_app", "load_config"]
