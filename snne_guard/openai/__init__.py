"""Guard clients of the ``openai`` package."""

from snne_guard.errors import MissingExtraError

try:
    from snne_guard.openai.client import AsyncGuardedOpenAI, GuardedOpenAI, guard_client
    from snne_guard.openai.other_models import OtherModel
except ModuleNotFoundError as error:
    msg = f"the {error.name} package"
    raise MissingExtraError(msg, extra="openai") from error

__all__ = ["AsyncGuardedOpenAI", "GuardedOpenAI", "OtherModel", "guard_client"]
