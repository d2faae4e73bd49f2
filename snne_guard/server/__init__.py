"""The guard as a server that speaks OpenAI's API, for clients in any language."""

from snne_guard.errors import MissingExtraError

try:
    import httpx2 as _httpx2
    import openai as _openai
    import prometheus_client as _prometheus
    import starlette as _starlette
    import uvicorn as _uvicorn
except ImportError as error:
    msg = f"the {error.name} package"
    raise MissingExtraError(msg, extra="server") from error

from snne_guard.server.app import create_admin_app, create_app
from snne_guard.server.policies import ServerConfig, load_config

del _httpx2, _openai, _prometheus, _starlette, _uvicorn

__all__ = ["ServerConfig", "create_admin_app", "create_app", "load_config"]
