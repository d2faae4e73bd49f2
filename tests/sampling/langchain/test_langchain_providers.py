"""The table of provider classes, and rows that a user adds."""

from __future__ import annotations

import importlib

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard.sampling.langchain import (
    LangChainSender,
    Provider,
    RejectedParameters,
    capabilities,
    register_provider,
)
from snne_guard.sampling.langchain.providers import DEFAULT, PROVIDERS, provider_of
from snne_guard.sampling.replies import ProviderCapabilities
from tests.sampling.langchain.support import SAMPLE, Scripted, ScriptedStream


@pytest.mark.parametrize(
    "name", sorted({name for row in PROVIDERS for name in row.classes})
)
def test_every_row_names_a_class_that_is_there(name: str) -> None:
    package, _, kind = name.partition(".")
    module = (
        "langchain_openai.chat_models.base" if kind == "BaseChatOpenAI" else package
    )
    module = "snne_guard.langchain" if package == "snne_guard" else module
    there = getattr(importlib.import_module(module), kind)
    assert f"{there.__module__.partition('.')[0]}.{there.__name__}" == name


def test_a_class_in_no_row_is_asked_in_the_safe_way() -> None:
    assert provider_of(Scripted()) is DEFAULT
    assert capabilities(Scripted()) == ProviderCapabilities(temperature=True)
    fake = FakeListChatModel(responses=["Paris"])
    assert capabilities(fake) == ProviderCapabilities(temperature=False)
    # A temperature that a call sets by itself can be set for samples too.
    assert capabilities(fake, {"temperature": 0}).temperature


def test_a_row_of_the_users_own_counts_for_subclasses(table: Provider) -> None:
    assert provider_of(ScriptedStream()) is table
    nearer = Provider(classes=("tests.ScriptedStream",), temperature_range=(0.0, 0.5))
    register_provider(nearer)
    assert provider_of(ScriptedStream()) is nearer
    assert provider_of(Scripted()) is table
    model = ScriptedStream()
    reply = LangChainSender(model, []).send(SAMPLE)
    assert (model.calls[0].temperature, reply.temperature_set) == (0.5, False)


def test_a_temperature_by_another_name(table: Provider) -> None:
    assert table.temperature == "temperature"

    class Heated(Scripted):
        heat: float = 0.0

    register_provider(Provider(classes=("tests.Heated",), temperature="heat"))
    model = Heated()
    assert LangChainSender(model, []).send(SAMPLE).temperature_set
    assert (model.calls[0].model.heat, model.heat) == (1.0, 0.0)


def test_rejections_are_kept_for_a_model_by_its_name() -> None:
    rejected = RejectedParameters()
    rejected.of(Scripted(model_name="a")).add("n")
    assert rejected.of(Scripted(model_name="a", text="x")) == {"n"}
    assert rejected.of(Scripted(model_name="b")) == set()
