"""langchain-tests' unit suite on a local model. It skips two tests of its own:

``test_init_from_env``: a local model needs nothing of the environment.
``test_serdes``: weights are not written into a chain's JSON.
"""

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from snne_guard import TransformersChatModel
from snne_guard.sampling.huggingface import HuggingFaceModel
from tests.support.tiny_llama import make_model, make_tokenizer


class Tiny:
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return TransformersChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": HuggingFaceModel(make_model(), make_tokenizer())}

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        # No timeout and no retries: there is no network in between.
        return {"temperature": 0, "max_tokens": 20, "stop": []}

    @property
    def model_override_value(self) -> str | None:
        return None


class TestUnit(Tiny, ChatModelUnitTests):
    pass


@pytest.mark.filterwarnings("ignore:The test .* is marked with:pytest.PytestWarning")
class TestIntegration(Tiny, ChatModelIntegrationTests):
    """The suite that asks the model; this one replies with letters at random."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"seed": 1, **super().chat_model_params}

    @property
    def supports_image_inputs(self) -> bool:
        return False

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False
