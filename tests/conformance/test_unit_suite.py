"""langchain-tests' unit suite. It skips two tests of its own:

``test_init_from_env``: a guard takes a model, not an environment.
``test_serdes``: LangChain loads no classes of other packages, so the guard says that
it is not serialisable.
"""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.unit_tests import ChatModelUnitTests
from pydantic import SecretStr

from snne_guard import GuardedChatModel, SNNEGuard


class TestGuardedChatModel(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        model = ChatOpenAI(model="test-model", api_key=SecretStr("test"))
        return {"guard": SNNEGuard(model)}
